/**
 * Views of the bundle list and of one bundle with the data needed for a decision.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, _n, sprintf } = wp.i18n;
	const { text, api, apply, decisions, history } = codebox;
	const { el, id, data, code, time, button, badge, notice, failure, facts, table, state, counts, announce } = codebox.dom;

	const PER_PAGE = 25;

	function cells( row ) {
		const reference = row.run_id || row.artifact_id;
		return [
			el( 'a', { href: '#/bundles/' + encodeURIComponent( reference ), class: 'row-title' }, code( text.short( row.artifact_id || row.run_id ) ) ),
			row.outcome ? state( row.outcome ) : badge( 'bad', __( 'unreadable', 'codebox' ) ),
			history.state( row.state ),
			data( text.summary( row ) || '—' ),
			row.created_at ? time( row.created_at ) : '—',
		];
	}

	/** Shows the bundles of this site, newest first. */
	async function list( { signal }, page ) {
		const current = Math.max( 1, Number( page ) || 1 );
		const answer = await api.call( 'list-artifacts', { page: current, per_page: PER_PAGE }, signal );
		const rows = Array.isArray( answer.artifacts ) ? answer.artifacts : [];
		const pages = Math.ceil( ( Number( answer.total ) || 0 ) / PER_PAGE );
		const content = rows.length
			? [ table( __( 'Bundles of this site', 'codebox' ), [ __( 'Bundle', 'codebox' ), __( 'Outcome', 'codebox' ), __( 'State', 'codebox' ), __( 'Summary', 'codebox' ), __( 'Made', 'codebox' ) ], rows.map( cells ) ) ]
			: [ el( 'p', {}, __( 'There is no bundle.', 'codebox' ) ) ];
		if ( pages > 1 ) {
			content.push(
				el(
					'nav',
					{ class: 'wp-codebox-buttons', 'aria-label': __( 'Pages', 'codebox' ) },
					current > 1 ? el( 'a', { class: 'button', href: '#/bundles/page/' + ( current - 1 ) }, __( 'Newer', 'codebox' ) ) : null,
					/* translators: 1: page, 2: number of pages. */
					el( 'span', {}, sprintf( __( 'Page %1$s of %2$s', 'codebox' ), text.number( current ), text.number( pages ) ) ),
					current < pages ? el( 'a', { class: 'button', href: '#/bundles/page/' + ( current + 1 ) }, __( 'Older', 'codebox' ) ) : null
				)
			);
		}
		return { title: __( 'Bundles', 'codebox' ), content };
	}

	/** Returns a badge that says who signed the bundle. */
	function signature( verification ) {
		const status = ( verification.signature && verification.signature.status ) || 'unsigned';
		const words = {
			'signed-by-this-host': [ 'good', __( 'signed by this host', 'codebox' ) ],
			'signed-by-known': [ 'warn', __( 'signed by another host whose key is known', 'codebox' ) ],
			'browser-origin': [ 'warn', __( 'uploaded by a browser, signed by this host', 'codebox' ) ],
			'browser-origin-known': [ 'warn', __( 'uploaded by a browser, signed by another host whose key is known', 'codebox' ) ],
			'signed-by-unknown': [ 'bad', __( 'signed by an unknown key', 'codebox' ) ],
			unsigned: [ 'bad', __( 'not signed', 'codebox' ) ],
			invalid: [ 'bad', __( 'the signature is invalid', 'codebox' ) ],
		};
		// An earlier version signed the bundle; unsigned keys such as `cases` may have been added later.
		if ( 'signed-by-this-host' === status && 'files' === verification.signature.coverage ) {
			return badge( 'warn', __( 'signed by this host, except some fields of the manifest', 'codebox' ) );
		}
		const [ kind, label ] = Object.hasOwn( words, status ) ? words[ status ] : [ 'bad', text.flat( status ) ];
		return badge( kind, label );
	}

	/** Returns whether a browser uploaded the contents, according to a valid signature. */
	function ofBrowser( verification ) {
		return Boolean( verification.signature && 'browser' === verification.signature.origin );
	}

	/** Says that a browser uploaded the contents; null for the change of a sandbox. */
	function origin( verification ) {
		return ofBrowser( verification )
			? notice(
				'warning',
				el(
					'p',
					{},
					badge( 'warn', __( 'from a browser', 'codebox' ) ),
					' ',
					__( 'A browser uploaded these files. This host computed the difference, but it did not see the code run, and no sandbox isolated it. To apply the files, you must also confirm that they come from a browser.', 'codebox' )
				)
			)
			: null;
	}

	/** Returns a badge that says whether the bundle is unchanged since it was created. */
	function verified( verification ) {
		if ( true === verification.valid ) {
			return badge( 'good', __( 'every file matches the manifest', 'codebox' ) );
		}
		return badge( 'bad', __( 'damaged or altered', 'codebox' ) );
	}

	function violations( verification ) {
		const found = Array.isArray( verification.violations ) ? verification.violations : [];
		if ( 0 === found.length ) {
			return null;
		}
		return notice(
			'error',
			el( 'p', {}, el( 'strong', {}, __( 'The verification of this bundle failed. The bundle cannot be approved; it can be rejected and discarded.', 'codebox' ) ), ' ', __( 'The data below comes from the bundle itself and is not verified.', 'codebox' ) ),
			el( 'ul', { class: 'ul-disc' }, found.slice( 0, 50 ).map( ( one ) => el( 'li', {}, code( one.code ), ' ', one.file || one.path ? code( one.file || one.path ) : null, ' ', data( one.message ) ) ) )
		);
	}

	/** Shows how the run was isolated: one table row per axis (e.g. network), with what enforced it. */
	function isolation( report ) {
		if ( ! report || ! report.level ) {
			return null;
		}
		const axes = Array.isArray( report.axes ) ? report.axes : [];
		return el(
			'details',
			{},
			el( 'summary', {}, badge( 'full' === report.level ? 'good' : 'warn', data( report.level ) ), ' ', __( 'what enforced it', 'codebox' ) ),
			table(
				__( 'Isolation by axis', 'codebox' ),
				[ __( 'Axis', 'codebox' ), __( 'Enforced', 'codebox' ), __( 'By', 'codebox' ) ],
				axes.map( ( axis ) => [ data( axis.axis ), data( axis.enforced ), data( axis.by ) ] )
			)
		);
	}

	function checks( results ) {
		const suites = results && Array.isArray( results.suites ) ? results.suites : [];
		if ( 0 === suites.length ) {
			return el( 'p', {}, __( 'No check was asked for.', 'codebox' ) );
		}
		return el(
			'ul',
			{ class: 'wp-codebox-checks' },
			suites.map( ( suite ) =>
				el(
					'li',
					{},
					state( suite.status ),
					' ',
					code( suite.name ),
					suite.outputTail ? el( 'details', {}, el( 'summary', {}, __( 'last output', 'codebox' ) ), el( 'pre', { class: 'wp-codebox-tail', tabindex: 0, dir: 'ltr' }, text.node( suite.outputTail, 'output' ) ) ) : null
				)
			)
		);
	}

	const KINDS = () => ( { added: [ 'good', __( 'added', 'codebox' ) ], modified: [ 'plain', __( 'modified', 'codebox' ) ], deleted: [ 'bad', __( 'deleted', 'codebox' ) ] } );

	/** Shows one changed file: checkbox, name, line counts, and its diff on demand. */
	function file( entry, bundle, choose, signal ) {
		const readable = bundle.sound && api.has( 'get-artifact-diff' );
		const offered = choose && ! bundle.direct.has( entry.path );
		const name = id( 'file' );
		const body = el( 'div', { id: name + '-diff', hidden: true } );
		const [ kind, label ] = KINDS()[ entry.status ] || [ 'plain', text.flat( entry.status ) ];
		let loaded = false;
		const load = async () => {
			body.replaceChildren( codebox.dom.waiting() );
			try {
				const answer = await api.call( 'get-artifact-diff', { artifact_id: bundle.reference, files: [ entry.path ] }, signal );
				const row = ( Array.isArray( answer.files ) ? answer.files : [] ).find( ( one ) => one.path === entry.path );
				const patch = row && 'string' === typeof row.patch ? row.patch : row && 'string' === typeof row.patch_base64 ? text.decoded( row.patch_base64 ) : null;
				loaded = true;
				if ( null === patch ) {
					body.replaceChildren(
						el( 'p', {}, row && row.omitted ? __( 'This diff is too large for the browser. Read it with the command "wp codebox artifacts diff", or download the bundle.', 'codebox' ) : __( 'The bundle has no text diff of this file.', 'codebox' ) )
					);
					return;
				}
				body.replaceChildren(
					entry.binary || row.binary ? el( 'p', {}, __( 'This file is not text; the patch contains its bytes.', 'codebox' ) ) : '',
					patch.includes( '\ufffd' ) ? el( 'p', {}, __( 'Bytes that are not UTF-8 are shown as �.', 'codebox' ) ) : '',
					codebox.diff.draw( patch, entry.path )
				);
			} catch ( thrown ) {
				if ( 'AbortError' !== thrown.name ) {
					body.replaceChildren( failure( thrown ) );
				}
			}
		};
		const toggle = button(
			__( 'Show difference', 'codebox' ),
			() => {
				body.hidden = ! body.hidden;
				toggle.setAttribute( 'aria-expanded', String( ! body.hidden ) );
				if ( ! body.hidden && ! loaded ) {
					load();
				}
			},
			{ class: 'button button-small', 'aria-expanded': 'false', 'aria-controls': name + '-diff', 'aria-describedby': name + '-name' }
		);
		return el(
			'li',
			{},
			el(
				'div',
				{ class: 'wp-codebox-file' },
				offered ? el( 'input', { type: 'checkbox', id: name, value: entry.path, on: { change: choose } } ) : null,
				el( offered ? 'label' : 'span', { for: offered ? name : null, id: name + '-name' }, code( entry.relativePath || entry.path ) ),
				badge( kind, label ),
				bundle.applied.has( entry.path ) ? badge( 'good', __( 'applied', 'codebox' ) ) : null,
				entry.binary ? badge( 'plain', __( 'binary', 'codebox' ) ) : counts( Number( entry.insertions ) || 0, Number( entry.deletions ) || 0 ),
				readable ? toggle : null
			),
			body
		);
	}

	/** Groups changed files by mount target. */
	function fileTree( entries, bundle, choose, signal ) {
		const mounts = new Map();
		for ( const entry of entries ) {
			const mount = String( entry.mountTarget || '' );
			mounts.set( mount, [ ...( mounts.get( mount ) || [] ), entry ] );
		}
		return [ ...mounts ].map( ( [ mount, rows ] ) =>
			el( 'div', {}, mount ? el( 'h4', {}, code( mount ) ) : null, el( 'ul', { class: 'wp-codebox-files' }, rows.map( ( entry ) => file( entry, bundle, choose, signal ) ) ) )
		);
	}

	/** Returns a sentence that says how many files of the bundle are applied to the site. */
	function present( bundle, entries ) {
		if ( 0 === bundle.applied.size ) {
			return 'rolled-back' === bundle.state
				? __( 'Files of this bundle were applied and taken back; none of them is applied now.', 'codebox' )
				: __( 'The run changed nothing on this site. Its change exists only in this bundle until some of its files are applied.', 'codebox' );
		}
		if ( bundle.committed.size === bundle.applied.size ) {
			/* translators: 1: number of committed files, 2: number of all files. */
			return sprintf( _n( '%1$s of %2$s changed file is committed on a git branch; the files of this site are as before.', '%1$s of %2$s changed files are committed on a git branch; the files of this site are as before.', entries.length, 'codebox' ), text.number( bundle.committed.size ), text.number( entries.length ) );
		}
		/* translators: 1: number of applied files, 2: number of all files. */
		return sprintf( _n( '%1$s of %2$s changed file is applied to this site.', '%1$s of %2$s changed files are applied to this site.', entries.length, 'codebox' ), text.number( bundle.applied.size ), text.number( entries.length ) );
	}

	/**
	 * Returns whether direct apply has written every changed file. Files that another plugin wrote do not count,
	 * because that plugin may have restored them without a record in the audit log.
	 */
	function isWhole( bundle, entries ) {
		return entries.length > 0 && bundle.direct.size >= entries.length;
	}

	/** Returns why the bundle cannot be approved, as data; null when it can. */
	function obstacle( bundle, approval, entries, may ) {
		if ( ! bundle.sound ) {
			return null;
		}
		if ( true !== approval.approvable ) {
			return approval.reason || __( 'The bundle is marked as one that cannot be approved.', 'codebox' );
		}
		if ( ! may.has( 'apply' ) ) {
			return __( 'You may review bundles on this site, not apply them.', 'codebox' );
		}
		return isWhole( bundle, entries ) ? __( 'Every changed file of this bundle is applied.', 'codebox' ) : null;
	}

	/** Returns the address that opens a bundle in a WordPress of this browser. */
	function sandboxAddress( base, bundle ) {
		const address = new URL( base, window.location.href );
		address.searchParams.set( 'slug', bundle.artifact_id );
		return address.href;
	}

	/** Shows the changed files and the buttons to decide about them; the state of the bundle selects the buttons. */
	function decide( bundle, answer, entries, { signal, may, settings, sandbox, place, refresh } ) {
		const approval = ( answer.artifact.review || {} ).approval || {};
		const why = obstacle( bundle, approval, entries, may );
		const possible = bundle.sound && null === why && entries.length > 0;
		const approvable = possible && 'none' !== answer.adapter;
		const nudge = el( 'div', { role: 'alert' } );
		const tree = el( 'div', {} );
		const boxes = () => [ ...tree.querySelectorAll( 'input[type=checkbox]' ) ];
		const chosen = () => boxes().filter( ( box ) => box.checked ).map( ( box ) => box.value );
		const number = el( 'span', { class: 'wp-codebox-chosen' } );
		const choose = () => {
			nudge.replaceChildren();
			/* translators: 1: number of chosen files, 2: number of all files. */
			number.textContent = sprintf( __( '%1$s of %2$s chosen', 'codebox' ), text.number( chosen().length ), text.number( boxes().length ) );
		};
		tree.append( ...fileTree( entries, bundle, approvable ? choose : null, signal ) );
		const all = button( __( 'Choose all', 'codebox' ), () => {
			const every = boxes().every( ( box ) => box.checked );
			boxes().forEach( ( box ) => {
				box.checked = ! every;
			} );
			choose();
			announce( number.textContent );
		} );
		choose();

		const confirm = button(
			__( 'Approve and apply…', 'codebox' ),
			async () => {
				if ( 0 === chosen().length ) {
					nudge.replaceChildren( notice( 'warning', el( 'p', {}, __( 'Choose at least one file.', 'codebox' ) ) ) );
					return;
				}
				confirm.setAttribute( 'aria-busy', 'true' );
				await apply.approve( bundle, chosen(), place, signal, refresh );
				confirm.removeAttribute( 'aria-busy' );
			},
			{ class: 'button button-primary' }
		);
		const back = may.has( 'apply' ) && api.has( 'rollback-artifact' ) ? apply.restorable( answer.applied_files ) : [];
		const reviewable = api.has( 'review-artifact' );
		const rejectable = reviewable && 'rejected' !== bundle.state && ! isWhole( bundle, entries );
		return [
			/* translators: %s: number of files. */
			el( 'h3', {}, sprintf( _n( '%s changed file', '%s changed files', entries.length, 'codebox' ), text.number( entries.length ) ) ),
			approvable ? el( 'p', { class: 'wp-codebox-buttons' }, all, number ) : null,
			tree,
			el( 'h3', {}, __( 'Decide', 'codebox' ) ),
			why ? notice( bundle.applied.size ? 'info' : 'warning', el( 'p', {}, data( why ) ) ) : null,
			possible && 'rejected' === bundle.state ? notice( 'info', el( 'p', {}, __( 'This change was rejected. It can still be approved.', 'codebox' ) ) ) : null,
			possible ? apply.applier( answer.adapter, settings ) : null,
			nudge,
			el(
				'div',
				{ class: 'wp-codebox-buttons' },
				approvable ? confirm : null,
				back.length ? button( __( 'Take back…', 'codebox' ), () => apply.takeBack( bundle, back, place, refresh ) ) : null,
				rejectable ? button( __( 'Reject…', 'codebox' ), () => decisions.refuse( bundle, 'reject', place, refresh ) ) : null,
				sandbox && bundle.sound && entries.length ? el( 'a', { class: 'button', href: sandboxAddress( sandbox, bundle ) }, __( 'Open in browser sandbox', 'codebox' ) ) : null,
				reviewable ? button( __( 'Ask for changes…', 'codebox' ), () => decisions.refuse( bundle, 'request-changes', place, refresh ) ) : null,
				api.has( 'export-artifact-bundle' ) ? button( __( 'Download', 'codebox' ), () => decisions.download( bundle, place, signal ) ) : null,
				api.has( 'discard-artifact' ) ? button( __( 'Discard…', 'codebox' ), () => decisions.discard( bundle, bundle.applied.size > 0 ), { class: 'button wp-codebox-danger' } ) : null
			),
		];
	}

	/**
	 * Returns the id of the bundle's run. It becomes a link once the site confirms that it has the run: a bundle that a browser
	 * uploaded or that was imported has no run on this site.
	 */
	function runOf( bundle, signal ) {
		const name = code( bundle.run_id );
		const place = el( 'span', { class: 'wp-codebox-run' }, name );
		if ( api.has( 'get-run' ) ) {
			api.call( 'get-run', { run_id: bundle.run_id }, signal ).then(
				() => place.replaceChildren( el( 'a', { href: '#/runs/' + encodeURIComponent( bundle.run_id ) }, name ) ),
				() => {}
			);
		}
		return place;
	}

	/** Lists the risk flags of a review, `flag` or `flag:path`, each with the sentence that explains the flag. */
	function riskList( flags, sentences ) {
		const row = ( risk ) => {
			const flag = String( risk );
			const name = flag.split( ':', 1 )[ 0 ];
			return el( 'li', {}, data( flag ), Object.hasOwn( sentences, name ) ? [ ' ', data( sentences[ name ] ) ] : null );
		};
		return el( 'ul', { class: 'ul-disc' }, flags.map( row ) );
	}

	/** Returns the content of a bundle's page below the result of the last decision. */
	function content( bundle, answer, context ) {
		const { artifact, verification = {} } = answer;
		const metadata = artifact.metadata || {};
		const review = artifact.review || {};
		const changed = artifact.changed_files || {};
		const entries = Array.isArray( changed ) ? changed : Array.isArray( changed.files ) ? changed.files : [];
		const risks = Array.isArray( review.riskFlags ) ? review.riskFlags : [];
		return [
			violations( verification ),
			origin( verification ),
			el( 'p', {}, present( bundle, entries ) ),
			facts( [
				[ __( 'State', 'codebox' ), history.state( bundle.state ) ],
				[ __( 'Outcome', 'codebox' ), artifact.outcome || metadata.outcome ? state( artifact.outcome || metadata.outcome ) : null ],
				[ __( 'Summary', 'codebox' ), data( text.summary( artifact ) || text.summary( metadata ) || text.summary( review ) ) ],
				[ __( 'Verification', 'codebox' ), verified( verification ) ],
				[ __( 'Signature', 'codebox' ), signature( verification ) ],
				[ __( 'Origin', 'codebox' ), ofBrowser( verification ) ? badge( 'warn', __( 'from a browser', 'codebox' ) ) : null ],
				[ __( 'Isolation', 'codebox' ), ofBrowser( verification ) ? null : isolation( metadata.isolation ) ],
				[ __( 'Made', 'codebox' ), artifact.created_at ? time( artifact.created_at ) : null ],
				[ __( 'Run', 'codebox' ), bundle.run_id && ! ofBrowser( verification ) ? runOf( bundle, context.signal ) : null ],
				[ __( 'Bundle', 'codebox' ), code( bundle.artifact_id ) ],
				[ __( 'Manifest sha256', 'codebox' ), bundle.manifest_sha256 ? code( bundle.manifest_sha256 ) : null ],
			] ),
			risks.length ? notice( 'warning', el( 'p', {}, el( 'strong', {}, __( 'Look closer:', 'codebox' ) ) ), riskList( risks, review.riskSentences || {} ) ) : null,
			el( 'h3', {}, __( 'Checks', 'codebox' ) ),
			checks( artifact.test_results ),
			...decide( bundle, answer, entries, context ),
			...history.section( answer, entries ),
		].filter( Boolean );
	}

	/** Reads a bundle with its verification, state and history. */
	async function inspect( reference, signal ) {
		const answer = await api.call( 'inspect-artifact', { artifact_id: reference }, signal );
		const artifact = answer.artifact || {};
		const verification = answer.verification || {};
		const applied = Array.isArray( answer.applied_files ) ? answer.applied_files : [];
		const pathsOf = ( counts ) => new Set( applied.filter( counts ).map( ( row ) => row.path ) );
		const bundle = {
			reference: artifact.run_id || reference,
			artifact_id: artifact.artifact_id || artifact.run_id || reference,
			run_id: artifact.run_id || '',
			manifest_sha256: answer.manifest_sha256 || verification.manifest_sha256,
			state: answer.state,
			applied: pathsOf( () => true ),
			direct: pathsOf( ( row ) => apply.DIRECT === row.adapter ),
			committed: pathsOf( ( row ) => apply.BRANCH === row.adapter ),
		};
		bundle.sound = true === verification.valid && Boolean( bundle.manifest_sha256 );
		return { bundle, answer: { ...answer, artifact } };
	}

	/**
	 * Shows one bundle: its verification, changed files, checks and history, and the buttons to decide about it. After a
	 * decision the bundle is read again, so that buttons and history show its new state. The result of the decision
	 * stays above and keeps the focus.
	 */
	async function one( context, reference ) {
		const { signal } = context;
		const place = el( 'div', { class: 'wp-codebox-result' } );
		const body = el( 'div', {} );
		const show = ( { bundle, answer } ) => body.replaceChildren( ...content( bundle, answer, { ...context, place, refresh } ) );
		const refresh = async () => {
			try {
				show( await inspect( reference, signal ) );
			} catch ( thrown ) {
				if ( 'AbortError' !== thrown.name ) {
					body.replaceChildren( failure( thrown.code ? thrown : api.problem( thrown ) ) );
				}
			}
		};
		const first = await inspect( reference, signal );
		show( first );
		const task = ( first.answer.artifact.metadata || {} ).task;
		const goal = task && task.goal;
		return {
			title: goal ? text.flat( goal ) : __( 'Bundle', 'codebox' ),
			heading: goal ? data( goal ) : code( first.bundle.artifact_id ),
			content: [ place, body ],
		};
	}

	codebox.bundles = { list, one };
} )( window.wpCodebox, window.wp );
