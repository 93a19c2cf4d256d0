/**
 * Decisions about a bundle. Each dialog names the bundle and asks for confirmation.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __ } = wp.i18n;
	const { text, api } = codebox;
	const { el, id, data, code, notice, failure, facts, ask, announce } = codebox.dom;

	const unchanged = () => __( 'Nothing on this site was changed.', 'codebox' );

	/** Shows nodes above the bundle and moves the focus there. */
	function tell( place, ...nodes ) {
		place.replaceChildren( ...nodes );
		place.firstElementChild.setAttribute( 'tabindex', '-1' );
		place.firstElementChild.focus();
	}

	function fileList( paths ) {
		return el( 'ul', { class: 'wp-codebox-named' }, paths.map( ( path ) => el( 'li', {}, code( path ) ) ) );
	}

	/** Rejects a bundle or requests changes, with a reason. */
	function refuse( bundle, action, place, after ) {
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
			done: () => {
				tell(
					place,
					notice(
						'success',
						el( 'p', {}, el( 'strong', {}, reject ? __( 'The change was rejected.', 'codebox' ) : __( 'Changes were requested.', 'codebox' ) ), ' ', unchanged() ),
						el( 'p', {}, __( 'Reason:', 'codebox' ), ' ', data( reason.value.trim() ) )
					)
				);
				after();
			},
		} );
	}

	/** Deletes the bundle permanently. */
	function discard( bundle, applied ) {
		ask( {
			title: __( 'Discard this bundle?', 'codebox' ),
			content: [
				el( 'p', {}, __( 'The bundle is deleted for good, with the change and the check results in it.', 'codebox' ) ),
				applied ? notice( 'warning', el( 'p', {}, __( 'Files of this bundle are applied. They stay as they are, and without the bundle this screen cannot take them back.', 'codebox' ) ) ) : null,
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

	codebox.decisions = { tell, fileList, unchanged, refuse, discard, download };
} )( window.wpCodebox, window.wp );
