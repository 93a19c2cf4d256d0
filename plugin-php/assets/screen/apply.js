/**
 * Applies approved files and takes them back. Each dialog states which files are written, and whether Codebox writes them.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, _n, sprintf } = wp.i18n;
	const { text, api, decisions } = codebox;
	const { el, id, data, code, badge, notice, failure, facts, table, ask } = codebox.dom;
	const { tell, fileList, unchanged } = decisions;

	/** Adapter of this plugin: the only one whose changes this screen can take back. */
	const DIRECT = 'codebox-direct';

	/** Adapter of this plugin that commits to a branch of a git repository and writes no file of the site. */
	const BRANCH = 'codebox-git-branch';

	/** Error codes after which it is unknown what the site plugin has written. */
	const UNKNOWN = [ 'wp_codebox_apply_result_invalid', 'wp_codebox_audit_failed', 'wp_codebox_internal', 'wp_codebox_review_result_invalid' ];

	/** Returns a sentence on what a failed apply may have changed on the site. */
	function consequence( error ) {
		const ours = /^(wp_codebox_|rest_ability_|rest_cookie_|rest_forbidden|rest_invalid_|ability_)/.test( error.code );
		return ours && ! UNKNOWN.includes( error.code )
			? unchanged()
			: __( 'It is not known whether files were written; check the target directories before you go on.', 'codebox' );
	}

	/**
	 * Returns a paragraph on what applies approved files: Codebox, another plugin or nothing.
	 *
	 * @param {string} adapter  Field `adapter` of an inspection.
	 * @param {string} settings Address of the settings page; '' for a user who may not change them.
	 */
	function applier( adapter, settings ) {
		if ( DIRECT === adapter ) {
			return el( 'p', {}, __( 'Codebox writes the approved files into this site: all of them or none. It requests pages of the site before and after, and restores the old files when pages work worse afterwards.', 'codebox' ) );
		}
		if ( BRANCH === adapter ) {
			return el( 'p', {}, __( 'Codebox commits the approved files to a branch of the git repository in its settings. The files of the site stay as they are.', 'codebox' ) );
		}
		if ( 'none' !== adapter ) {
			return el( 'p', {}, __( 'Another plugin of this site applies the approved files.', 'codebox' ) );
		}
		const way = settings
			? el( 'a', { href: settings }, __( 'Turn on direct apply in the settings of Codebox', 'codebox' ) )
			: __( 'An administrator can turn on direct apply in the settings of Codebox', 'codebox' );
		return notice(
			'warning',
			el( 'p', {}, el( 'strong', {}, __( 'Nothing on this site applies approved files yet.', 'codebox' ) ) ),
			el( 'p', {}, way, ' ', __( 'so that Codebox writes them itself; or activate a plugin that applies them; or download the bundle.', 'codebox' ) )
		);
	}

	/** Shows the requested pages before and after a change, those that got worse first. */
	function pages( health ) {
		const rows = [ ...( Array.isArray( health.pages ) ? health.pages : [] ) ].sort( ( a, b ) => Boolean( b.worse ) - Boolean( a.worse ) );
		const fatal = [ ...new Set( Array.isArray( health.fatal_errors ) ? health.fatal_errors : [] ) ];
		return [
			rows.length
				? table(
					__( 'Pages before and after the change', 'codebox' ),
					[ __( 'Page', 'codebox' ), __( 'Before', 'codebox' ), __( 'After', 'codebox' ), __( 'Result', 'codebox' ) ],
					rows.map( ( row ) => [ data( row.name ), data( row.before ), data( row.after ), row.worse ? badge( 'bad', __( 'worse', 'codebox' ) ) : badge( 'plain', __( 'as before', 'codebox' ) ) ] )
				)
				: null,
			fatal.length ? el( 'p', {}, __( 'New errors in the log of PHP:', 'codebox' ) ) : null,
			fatal.length ? el( 'ul', { class: 'wp-codebox-named' }, fatal.slice( 0, 5 ).map( ( line ) => el( 'li', {}, code( line ) ) ) ) : null,
		];
	}

	/** Returns a phrase on the health of the site; null when the answer contains no health status. */
	function healthy( health ) {
		const words = { unchanged: __( 'works as before', 'codebox' ), worse: __( 'got worse', 'codebox' ), unknown: __( 'not checked', 'codebox' ) };
		return Object.hasOwn( words, health.status ) ? words[ health.status ] : null;
	}

	/** Returns a list of the files that were left as they are, with the reasons. */
	function conflicts( rows ) {
		return Array.isArray( rows ) && rows.length
			? [
				el( 'p', {}, el( 'strong', {}, __( 'Left as they are:', 'codebox' ) ) ),
				el( 'ul', { class: 'wp-codebox-named' }, rows.map( ( row ) => el( 'li', {}, code( row.path ), ' ', data( row.reason ) ) ) ),
			]
			: [];
	}

	/** Returns a notice with the result that the adapter has reported. */
	function applied( answer ) {
		const result = answer.result && 'object' === typeof answer.result ? answer.result : {};
		const paths = Array.isArray( result.applied_files ) ? result.applied_files : [];
		const health = result.health || {};
		const good = false !== answer.success && 'failed' !== result.status;
		// Codebox itself reports in a sentence.
		const own = [ DIRECT, BRANCH ].includes( result.adapter ) && result.message;
		let said = __( 'The approval was handed to the plugin of this site that applies changes.', 'codebox' );
		if ( own && 'worse' === health.status ) {
			// The message of the server repeats every page; the table below has them.
			said = Array.isArray( result.conflicts ) && result.conflicts.length
				? __( 'Pages of the site work worse than before the change, and not every file could be restored; restore the listed files by hand.', 'codebox' )
				: __( 'Pages of the site work worse than before the change, so every file was restored.', 'codebox' );
		} else if ( own ) {
			said = data( result.message );
		} else if ( ! good ) {
			said = __( 'The plugin that applies changes reported a failure.', 'codebox' );
		} else if ( paths.length ) {
			/* translators: %s: number of files. */
			said = sprintf( _n( '%s file was handed to the site.', '%s files were handed to the site.', paths.length, 'codebox' ), text.number( paths.length ) );
		}
		return notice(
			good ? 'success' : 'error',
			el( 'p', {}, el( 'strong', {}, said ) ),
			fileList( paths ),
			...( 'worse' === health.status ? pages( health ) : [] ),
			...conflicts( result.conflicts ),
			facts( [
				[ __( 'Applied by', 'codebox' ), result.adapter ? code( result.adapter ) : null ],
				[ __( 'Reported status', 'codebox' ), ! own && result.status ? data( result.status ) : null ],
				[ __( 'Site', 'codebox' ), healthy( health ) ],
				[ __( 'Message', 'codebox' ), ! own && result.message ? data( result.message ) : null ],
				[ __( 'Branch', 'codebox' ), result.branch ? code( result.branch ) : null ],
				[ __( 'Commit', 'codebox' ), result.commit ? code( result.commit ) : null ],
				[ __( 'Reference', 'codebox' ), result.audit_reference ? code( result.audit_reference ) : null ],
			] )
		);
	}

	/** Returns the check box that confirms files which programs run or obey by themselves, and its nodes. */
	function confirmation( paths, risks ) {
		if ( 0 === paths.length ) {
			return { box: null, nodes: [] };
		}
		const name = id( 'confirm' );
		const box = el( 'input', { type: 'checkbox', id: name, required: true, 'aria-describedby': name + '-files' } );
		// A file without a risk runs because of its directory on this site: a must-use plugin or a drop-in.
		const reasons = ( path ) => {
			const found = risks.filter( ( risk ) => path === risk.path && risk.confirm ).map( ( risk ) => data( risk.sentence ) );
			return found.length ? found : [ __( 'WordPress runs files in this directory in every request.', 'codebox' ) ];
		};
		const list = el( 'ul', { id: name + '-files', class: 'wp-codebox-named wp-codebox-sensitive' }, paths.map( ( path ) => el( 'li', {}, code( path ), reasons( path ).map( ( reason ) => el( 'div', {}, reason ) ) ) ) );
		return {
			box,
			nodes: [
				notice(
					'warning',
					el( 'p', {}, el( 'strong', {}, __( 'Programs run or obey these files by themselves, as soon as they are written:', 'codebox' ) ) ),
					list,
					el( 'p', {}, __( 'If you do not expect these files, go back and leave them out, or reject the change.', 'codebox' ) ),
					el( 'p', { class: 'wp-codebox-confirm' }, box, el( 'label', { for: name }, __( 'I have read these files and confirm them as well.', 'codebox' ) ) )
				),
			],
		};
	}

	/** Returns the check box that confirms contents from a browser, and its nodes. */
	function originConfirmation( isOfBrowser ) {
		if ( ! isOfBrowser ) {
			return { box: null, nodes: [] };
		}
		const name = id( 'origin' );
		const box = el( 'input', { type: 'checkbox', id: name, required: true } );
		return {
			box,
			nodes: [
				notice(
					'warning',
					el( 'p', {}, __( 'A browser uploaded these files. This host did not see their code run.', 'codebox' ) ),
					el( 'p', { class: 'wp-codebox-confirm' }, box, el( 'label', { for: name }, __( 'I have read the change and confirm that it comes from a browser.', 'codebox' ) ) )
				),
			],
		};
	}

	/** Returns the sentence on what will be done with the approved files. */
	function intention( adapter ) {
		if ( DIRECT === adapter ) {
			return __( 'Codebox writes these files, as this bundle has them, into this site:', 'codebox' );
		}
		return BRANCH === adapter
			? __( 'Codebox commits these files, as this bundle has them, to a branch of the git repository in its settings:', 'codebox' )
			: __( 'These files, as this bundle has them, are handed to the plugin of this site that applies changes:', 'codebox' );
	}

	/**
	 * Approves files: runs the preflight, asks for confirmation, then applies.
	 *
	 * @param {Object}      bundle Bundle {artifact_id, run_id, manifest_sha256}.
	 * @param {Array}       paths  Approved paths.
	 * @param {HTMLElement} place  Element that shows the result.
	 * @param {Object}      signal AbortSignal that fires when the user leaves the view.
	 * @param {Function}    after  Called after the decision.
	 */
	async function approve( bundle, paths, place, signal, after ) {
		const input = { artifact_id: bundle.reference, approved_files: paths, manifest_sha256: bundle.manifest_sha256 };
		let preflight;
		try {
			preflight = await api.call( 'apply-artifact-preflight', input, signal );
		} catch ( thrown ) {
			if ( 'AbortError' !== thrown.name ) {
				tell( place, failure( thrown, unchanged() ) );
			}
			return;
		}
		const listed = ( value ) => ( Array.isArray( value ) ? value : [] );
		const { box, nodes } = confirmation( listed( preflight.confirm_files ), listed( preflight.risks ) );
		const origin = originConfirmation( true === preflight.browser_origin );
		let answer;
		ask( {
			/* translators: %s: number of files, with the word. */
			title: sprintf( __( 'Approve %s and apply?', 'codebox' ), text.files( paths.length ) ),
			content: [
				el( 'p', {}, intention( preflight.adapter ) ),
				fileList( preflight.approved_files || paths ),
				el( 'p', {}, BRANCH === preflight.adapter ? __( 'The site keeps its files. They are in these directories:', 'codebox' ) : __( 'The files are written to these directories:', 'codebox' ) ),
				fileList( Object.values( preflight.targets || {} ) ),
				...nodes,
				...origin.nodes,
				el( 'p', {}, __( 'The approval is valid only for the bundle whose manifest was just verified. SHA-256 of the manifest:', 'codebox' ), ' ', el( 'span', { class: 'wp-codebox-digest' }, code( preflight.manifest_sha256 || bundle.manifest_sha256 ) ) ),
			],
			confirm: __( 'Approve and apply', 'codebox' ),
			boxes: [ box, origin.box ].filter( Boolean ),
			after: consequence,
			act: async () => {
				const approved = {
					...input,
					approval: preflight.approval,
					...( box ? { confirm_sensitive: true } : {} ),
					...( origin.box ? { confirm_browser_origin: true } : {} ),
				};
				answer = api.has( 'review-artifact' )
					? await api.call( 'review-artifact', { ...approved, action: 'approve' } )
					: await api.call( 'apply-approved-artifact', approved );
			},
			done: () => {
				tell( place, applied( answer ) );
				after();
			},
		} );
	}

	/** Returns the applied files that a roll back would restore: those of the last change that Codebox applied. */
	function restorable( rows ) {
		const own = ( Array.isArray( rows ) ? rows : [] ).filter( ( row ) => DIRECT === row.adapter );
		const last = own.length ? own[ own.length - 1 ].reference : '';
		return own.filter( ( row ) => row.reference === last ).map( ( row ) => row.path );
	}

	/** Returns a notice with the result of a roll back. */
	function restored( answer ) {
		const result = answer.result && 'object' === typeof answer.result ? answer.result : {};
		const health = result.health || {};
		return notice(
			// Without `audit` the log could not be written; the message says so.
			false === answer.success || ! answer.audit ? 'warning' : 'success',
			el( 'p', {}, el( 'strong', {}, data( result.message ) ) ),
			fileList( Array.isArray( result.files ) ? result.files : [] ),
			...conflicts( result.conflicts ),
			...( 'worse' === health.status ? pages( health ) : [] ),
			facts( [ [ __( 'Site', 'codebox' ), healthy( health ) ], [ __( 'Reference', 'codebox' ), result.change ? code( result.change ) : null ] ] )
		);
	}

	/** Restores the files of the last change that Codebox applied, after a confirmation. */
	function takeBack( bundle, paths, place, after ) {
		let answer;
		ask( {
			/* translators: %s: number of files, with the word. */
			title: sprintf( __( 'Take %s back?', 'codebox' ), text.files( paths.length ) ),
			content: [
				el( 'p', {}, __( 'Codebox restores these files as they were before the change:', 'codebox' ) ),
				fileList( paths ),
				el( 'p', {}, __( 'A file that somebody changed since is left as it is and listed.', 'codebox' ) ),
			],
			confirm: __( 'Take back', 'codebox' ),
			after: consequence,
			act: async () => {
				answer = await api.call( 'rollback-artifact', { artifact_id: bundle.reference } );
			},
			done: () => {
				tell( place, restored( answer ) );
				after();
			},
		} );
	}

	codebox.apply = { DIRECT, BRANCH, applier, approve, restorable, takeBack };
} )( window.wpCodebox, window.wp );
