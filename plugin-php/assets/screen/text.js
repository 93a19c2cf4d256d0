/**
 * Text as it may be shown.
 *
 * Whatever an agent wrote passes here: terminal sequences are taken out, and characters that
 * cannot be seen, or that turn others around, become marks with their number. The answer is
 * always nodes of text, never markup.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, _n, sprintf } = wp.i18n;

	// CSI; OSC and the other string sequences, when they are ended on their line (an open one must
	// not swallow what follows); escapes of two bytes.
	const TERMINAL = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]?/g;
	// Controls but tab and line feed, format characters (bidirectional ones among them), surrogates,
	// private use, what is ignorable by default, and separators other than the space.
	const HIDDEN = /(?![\t\n ])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/gu;

	const NAMES = {
		0x00: 'NUL', 0x07: 'BEL', 0x08: 'BS', 0x0d: 'CR', 0x1b: 'ESC', 0x7f: 'DEL', 0xa0: 'NBSP', 0xad: 'SHY',
		0x061c: 'ALM', 0x200b: 'ZWSP', 0x200c: 'ZWNJ', 0x200d: 'ZWJ', 0x200e: 'LRM', 0x200f: 'RLM', 0x2028: 'LS', 0x2029: 'PS',
		0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO', 0x2060: 'WJ',
		0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
	};

	/** The mark that stands for a character: `U+202E RLO`. */
	function mark( character ) {
		const code = character.codePointAt( 0 );
		const number = 'U+' + code.toString( 16 ).toUpperCase().padStart( 4, '0' );
		return NAMES[ code ] ? number + ' ' + NAMES[ code ] : number;
	}

	/** Text without what only a terminal acts on. A lone carriage return is a line's end there. */
	function plain( value ) {
		return String( value ?? '' ).replace( /\r\n/g, '\n' ).replace( TERMINAL, '' );
	}

	/** Text for places that hold no elements: attributes, titles, what is read aloud. */
	function flat( value ) {
		return plain( value ).replace( HIDDEN, ( character ) => '[' + mark( character ) + ']' );
	}

	/**
	 * Text with marks, as a fragment.
	 *
	 * @param {*}      value What to show.
	 * @param {string} kind  'output' takes terminal sequences out; 'exact' shows them too, as marks.
	 */
	function node( value, kind ) {
		const text = 'exact' === kind ? String( value ?? '' ) : plain( value );
		const fragment = document.createDocumentFragment();
		let from = 0;
		for ( const match of text.matchAll( HIDDEN ) ) {
			if ( match.index > from ) {
				fragment.append( text.slice( from, match.index ) );
			}
			const span = document.createElement( 'span' );
			span.className = 'wp-codebox-mark';
			span.textContent = mark( match[ 0 ] );
			fragment.append( span );
			from = match.index + match[ 0 ].length;
		}
		fragment.append( text.slice( from ) );
		return fragment;
	}

	/** The bytes of a base64 text; those that are not UTF-8 become U+FFFD. */
	function decoded( base64 ) {
		const bytes = Uint8Array.from( window.atob( String( base64 ) ), ( character ) => character.charCodeAt( 0 ) );
		return new TextDecoder().decode( bytes );
	}

	/** The beginning of an id: enough to tell two apart, and to name it at the command line. */
	function short( id ) {
		return flat( id ).replace( /^(artifact-bundle-sha256-|run_)/, '' ).slice( 0, 12 );
	}

	/** How long ago, in words. */
	function ago( timestamp ) {
		const then = Date.parse( timestamp );
		if ( Number.isNaN( then ) ) {
			return flat( timestamp );
		}
		const seconds = Math.round( ( then - Date.now() ) / 1000 );
		const words = new Intl.RelativeTimeFormat( document.documentElement.lang || 'en', { numeric: 'auto' } );
		for ( const [ unit, length ] of [ [ 'day', 86400 ], [ 'hour', 3600 ], [ 'minute', 60 ] ] ) {
			if ( Math.abs( seconds ) >= length ) {
				return words.format( Math.trunc( seconds / length ), unit );
			}
		}
		return words.format( Math.min( 0, seconds ), 'second' );
	}

	/** A span of time in words. */
	function duration( milliseconds ) {
		if ( milliseconds < 1000 ) {
			/* translators: %s: number of milliseconds. */
			return sprintf( __( '%s ms', 'wp-codebox' ), Math.round( milliseconds ) );
		}
		/* translators: %s: number of seconds. */
		return sprintf( __( '%s s', 'wp-codebox' ), ( milliseconds / 1000 ).toFixed( 1 ) );
	}

	/** A number the way the reader writes it. */
	function number( value ) {
		return new Intl.NumberFormat( document.documentElement.lang || 'en' ).format( value );
	}

	/** "1 file", "3 files". */
	function files( count ) {
		/* translators: %s: number of files. */
		return sprintf( _n( '%s file', '%s files', count, 'wp-codebox' ), number( count ) );
	}

	codebox.text = { plain, flat, node, decoded, short, ago, duration, number, files };
} )( ( window.wpCodebox = window.wpCodebox || {} ), window.wp );
