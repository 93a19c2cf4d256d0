/**
 * Shows one file's patch as a table. Long patches and long lines are shown in parts, so every byte can be
 * displayed.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, _n, sprintf } = wp.i18n;
	const { text } = codebox;
	const { el, button } = codebox.dom;

	/** Number of lines of a patch that are shown at first; a button shows the next part. */
	const LINES = 400;
	/** Number of characters of a line that are shown at first. */
	const WIDTH = 1000;

	/** Parses a unified diff into rows: kind, line number before, line number after, text. */
	function parse( patch ) {
		const lines = patch.split( '\n' );
		if ( '' === lines[ lines.length - 1 ] ) {
			lines.pop();
		}
		const rows = [];
		let before = 0;
		let after = 0;
		// Remaining lines of the current hunk; inside a hunk, lines that look like headers are content.
		let left = 0;
		let right = 0;
		for ( const line of lines ) {
			const hunk = left <= 0 && right <= 0 ? /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec( line ) : null;
			if ( hunk ) {
				[ before, after ] = [ Number( hunk[ 1 ] ), Number( hunk[ 3 ] ) ];
				[ left, right ] = [ Number( hunk[ 2 ] ?? 1 ), Number( hunk[ 4 ] ?? 1 ) ];
				rows.push( { kind: 'hunk', text: line } );
			} else if ( left > 0 || right > 0 ) {
				const sign = line.charAt( 0 );
				if ( '+' === sign ) {
					rows.push( { kind: 'added', after: after++, text: line.slice( 1 ) } );
					right--;
				} else if ( '-' === sign ) {
					rows.push( { kind: 'removed', before: before++, text: line.slice( 1 ) } );
					left--;
				} else if ( '\\' === sign ) {
					rows.push( { kind: 'meta', text: line } );
				} else {
					rows.push( { kind: 'same', before: before++, after: after++, text: line.slice( 1 ) } );
					left--;
					right--;
				}
			} else {
				rows.push( { kind: 'meta', text: line } );
			}
		}
		return rows;
	}

	/** Shows the text of one line; a button reveals the part beyond the width limit. */
	function content( line ) {
		const cell = el( 'td', { class: 'wp-codebox-diff-text' } );
		const show = ( from ) => {
			cell.append( text.node( line.slice( from, from + WIDTH ), 'exact' ) );
			const rest = line.length - from - WIDTH;
			if ( rest > 0 ) {
				const more = button(
					/* translators: %s: number of characters. */
					sprintf( __( 'Show more: %s characters', 'codebox' ), text.number( rest ) ),
					() => {
						more.remove();
						show( from + WIDTH );
						cell.setAttribute( 'tabindex', '-1' );
						cell.focus();
					},
					{ class: 'button-link' }
				);
				cell.append( ' ', more );
			}
		};
		show( 0 );
		return cell;
	}

	const SIGNS = { added: '+', removed: '−', same: '', meta: '', hunk: '' };

	function row( entry ) {
		const spoken = { added: __( 'added', 'codebox' ), removed: __( 'removed', 'codebox' ) }[ entry.kind ];
		if ( 'hunk' === entry.kind || 'meta' === entry.kind ) {
			const cell = content( entry.text );
			cell.setAttribute( 'colspan', '4' );
			return el( 'tr', { class: 'wp-codebox-diff-' + entry.kind }, cell );
		}
		return el(
			'tr',
			{ class: 'wp-codebox-diff-' + entry.kind },
			el( 'td', { class: 'wp-codebox-diff-number' }, entry.before ? String( entry.before ) : '' ),
			el( 'td', { class: 'wp-codebox-diff-number' }, entry.after ? String( entry.after ) : '' ),
			el( 'td', { class: 'wp-codebox-diff-sign' }, spoken ? el( 'span', { class: 'screen-reader-text' }, spoken ) : null, el( 'span', { 'aria-hidden': 'true' }, SIGNS[ entry.kind ] ) ),
			content( entry.text )
		);
	}

	/**
	 * Creates the table that shows a patch.
	 *
	 * @param {string} patch Patch of one file.
	 * @param {string} name  Path of the file, for the caption.
	 */
	function draw( patch, name ) {
		const rows = parse( patch );
		const body = el( 'tbody', {} );
		const table = el(
			'table',
			{ class: 'wp-codebox-diff', dir: 'ltr' },
			/* translators: %s: path of a file. */
			el( 'caption', { class: 'screen-reader-text' }, sprintf( __( 'Difference of %s', 'codebox' ), text.flat( name ) ) ),
			el(
				'thead',
				{ class: 'screen-reader-text' },
				el( 'tr', {}, [ __( 'Line before', 'codebox' ), __( 'Line after', 'codebox' ), __( 'Change', 'codebox' ), __( 'Text', 'codebox' ) ].map( ( column ) => el( 'th', { scope: 'col' }, column ) ) )
			),
			body
		);
		const frame = el( 'div', { class: 'wp-codebox-diff-frame', tabindex: 0, role: 'region', 'aria-label': sprintf( /* translators: %s: path of a file. */ __( 'Difference of %s', 'codebox' ), text.flat( name ) ) }, table );
		const more = el( 'p', {} );
		let shown = 0;
		const next = () => {
			const first = shown;
			body.append( ...rows.slice( shown, shown + LINES ).map( row ) );
			shown = Math.min( rows.length, shown + LINES );
			more.replaceChildren();
			if ( shown < rows.length ) {
				const left = rows.length - shown;
				/* translators: %s: number of lines. */
				more.append( button( sprintf( _n( 'Show more: %s line', 'Show more: %s lines', left, 'codebox' ), text.number( left ) ), next ) );
			}
			if ( first > 0 ) {
				body.rows[ first ].setAttribute( 'tabindex', '-1' );
				body.rows[ first ].focus();
			}
		};
		next();
		return el( 'div', {}, frame, more );
	}

	codebox.diff = { parse, draw };
} )( window.wpCodebox, window.wp );
