/**
 * Decisions about a bundle. Each dialog names the bundle and asks for confirmation.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, _n, sprintf } = wp.i18n;
	const { text, api } = codebox;
	const { el, id, data, code, notice, failure, facts, ask, announce } = codebox.dom;

	/** Error codes after which it is unknown what the site plugin has written. */
	const UNKNOWN = [ 'wp_codebox_apply_result_invalid', 'wp_codebox_audit_failed', 'wp_codebox_internal', 'wp_codebox_review_result_invalid' ];

	const unchanged = () => __( 'Nothing on this site was changed.', 'codebox' );

	/** Returns a sentence on what a failed apply may have changed on the site. */
	function consequence( error ) {
		const ours = /^(wp_codebox_|rest_ability_|rest_cookie_|rest_forbidden|rest_invalid_|ability_)/.test( error.code );
		return ours && ! UNKNOWN.includes( error.code )
			? unchanged()
			: __( 'It is not known whether files were written; look at the target before you go on.', 'codebox' );
	}

	/** Shows nodes above the bundle and moves the focus there. */
	function tell( place, ...nodes ) {
		place.replaceChildren( ...nodes );
		place.firstElementChild.setAttribute( 'tabindex', '-1' );
		place.firstElementChild.focus();
	}

	function fileList( paths ) {
		return el( 'ul', { class: 'wp-codebox-named' }, paths.map( ( path ) => el( 'li', {}, code( path ) ) ) );
	}

	/** Returns a notice with the result that the plugin which applies changes has reported. */
	function applied( answer ) {
		const result = answer.result && 'object' === typeof answer.result ? answer.result : {};
		const paths = Array.isArray( result.applied_files ) ? result.applied_files : [];
		const good = false !== answer.success && 'failed' !== result.status;
		let said = __( 'The decision was handed to a plugin of the site.', 'codebox' );
		if ( ! good ) {
			said = __( 'The plugin that applies changes says that it failed.', 'codebox' );
		} else if ( paths.length ) {
			/* translators: %s: number of files. */
			said = sprintf( _n( '%s file was handed to the site.', '%s files were handed to the site.', paths.length, 'codebox' ), text.number( paths.length ) );
		}
		return notice(
			good ? 'success' : 'error',
			el( 'p', {}, el( 'strong', {}, said ) ),
			fileList( paths ),
			facts( [
				[ __( 'Applied by', 'codebox' ), result.adapter ? code( result.adapter ) : null ],
				[ __( 'Reported status', 'codebox' ), result.status ? data( result.status ) : null ],
				[ __( 'Message', 'codebox' ), result.message ? data( result.message ) : null ],
				[ __( 'Branch', 'codebox' ), result.branch ? code( result.branch ) : null ],
				[ __( 'Commit', 'codebox' ), result.commit ? code( result.commit ) : null ],
				[ __( 'Reference', 'codebox' ), result.audit_reference ? code( result.audit_reference ) : null ],
			] )
		);
	}

	/**
	 * Approves files: runs the preflight, asks for confirmation, then applies.
	 *
	 * @param {Object}      bundle Bundle {artifact_id, run_id, manifest_sha256}.
	 * @param {Array}       paths  Approved paths.
	 * @param {HTMLElement} place  Element that shows the result.
	 * @param {Object}      signal AbortSignal that fires when the user leaves the view.
	 * @param {Function}    after  Called after the files were applied.
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
		let answer;
		ask( {
			/* translators: %s: number of files, with the word. */
			title: sprintf( __( 'Approve %s and apply?', 'codebox' ), text.files( paths.length ) ),
			content: [
				el( 'p', {}, __( 'These files, as this bundle has them, are handed to the plugin of this site that applies changes:', 'codebox' ) ),
				fileList( preflight.approved_files || paths ),
				el( 'p', {}, __( 'The files are written to these directories:', 'codebox' ) ),
				fileList( Object.values( preflight.targets || {} ) ),
				el( 'p', {}, __( 'Valid only for the manifest that was just verified:', 'codebox' ), ' ', el( 'span', { class: 'wp-codebox-digest' }, code( preflight.manifest_sha256 || bundle.manifest_sha256 ) ) ),
			],
			confirm: __( 'Approve and apply', 'codebox' ),
			after: consequence,
			act: async () => {
				const approved = { ...input, approval: preflight.approval };
				answer = api.has( 'review-artifact' )
					? await api.call( 'review-artifact', { ...approved, action: 'approve' } )
					: await api.call( 'apply-approved-artifact', approved );
			},
			done: () => {
				after();
				tell( place, applied( answer ) );
			},
		} );
	}

	/** Rejects a bundle or requests changes, with a reason. */
	function refuse( bundle, action, place ) {
		const name = id( 'reason' );
		const reason = el( 'textarea', { id: name, name: 'reason', rows: 3, required: true, maxlength: 4000, class: 'large-text' } );
		const reject = 'reject' === action;
		ask( {
			title: reject ? __( 'Reject this change?', 'codebox' ) : __( 'Ask for changes?', 'codebox' ),
			content: [
				el( 'p', {}, __( 'The decision and its reason are written to the audit log. The bundle stays until it is discarded.', 'codebox' ) ),
				el( 'p', {}, el( 'label', { for: name }, __( 'Reason', 'codebox' ) ), reason ),
			],
			confirm: reject ? __( 'Reject', 'codebox' ) : __( 'Ask for changes', 'codebox' ),
			after: unchanged,
			act: () => api.call( 'review-artifact', { artifact_id: bundle.reference, action, reason: reason.value.trim(), ...( bundle.manifest_sha256 ? { manifest_sha256: bundle.manifest_sha256 } : {} ) } ),
			done: () =>
				tell(
					place,
					notice(
						'success',
						el( 'p', {}, el( 'strong', {}, reject ? __( 'The change was rejected.', 'codebox' ) : __( 'Changes were requested.', 'codebox' ) ), ' ', unchanged() ),
						el( 'p', {}, __( 'Reason:', 'codebox' ), ' ', data( reason.value.trim() ) )
					)
				),
		} );
	}

	/** Deletes the bundle permanently. */
	function discard( bundle ) {
		ask( {
			title: __( 'Discard this bundle?', 'codebox' ),
			content: [
				el( 'p', {}, __( 'It is deleted for good, with the change and the evidence in it.', 'codebox' ) ),
				facts( [
					[ __( 'Bundle', 'codebox' ), code( bundle.artifact_id ) ],
					[ __( 'Run', 'codebox' ), bundle.run_id ? code( bundle.run_id ) : null ],
				] ),
			],
			confirm: __( 'Discard', 'codebox' ),
			danger: true,
			act: () => api.call( 'discard-artifact', { artifact_id: bundle.reference } ),
			done: () => {
				window.location.hash = '#/bundles';
				announce( __( 'The bundle was discarded.', 'codebox' ) );
			},
		} );
	}

	/** Downloads the bundle as one file. */
	async function download( bundle, place, signal ) {
		try {
			const answer = await api.call( 'export-artifact-bundle', { artifact_id: bundle.reference }, signal );
			const bytes = Uint8Array.from( window.atob( answer.archive ), ( character ) => character.charCodeAt( 0 ) );
			const address = URL.createObjectURL( new Blob( [ bytes ], { type: 'application/x-tar' } ) );
			const link = el( 'a', { href: address, download: String( answer.run_id || bundle.run_id ).replace( /[^A-Za-z0-9_-]/g, '' ) + '.tar', hidden: true } );
			document.getElementById( 'wp-codebox-screen' ).append( link );
			link.click();
			link.remove();
			setTimeout( () => URL.revokeObjectURL( address ), 60000 );
			tell(
				place,
				notice(
					'success',
					el( 'p', {}, __( 'The bundle was downloaded.', 'codebox' ) ),
					facts( [ [ __( 'Bytes', 'codebox' ), text.number( bytes.length ) ], [ __( 'sha256', 'codebox' ), answer.sha256 ? code( answer.sha256 ) : null ] ] )
				)
			);
		} catch ( thrown ) {
			if ( 'AbortError' !== thrown.name ) {
				tell( place, failure( thrown.code ? thrown : api.problem( thrown ) ) );
			}
		}
	}

	codebox.decisions = { approve, refuse, discard, download };
} )( window.wpCodebox, window.wp );
