/**
 * Makes untrusted text safe to show.
 *
 * All text written by an agent passes through this module: terminal sequences are removed, and invisible or
 * direction-changing characters become marks with their code point. The result is always text nodes, never
 * HTML.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, _n, sprintf } = wp.i18n;

	// CSI sequences; OSC and other string sequences that end on the same line (an unterminated one must not
	// swallow the following text); two-byte escapes.
	const TERMINAL = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]?/g;
	// Control characters except tab and line feed, format characters (including bidirectional ones),
	// surrogates, private use, default ignorables, and separators other than the space.
	const HIDDEN = /(?![\t\n ])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/gu;

	// Of these, the characters that translations and number formats never need: they need spaces, joiners and the
	// two marks of a direction.
	const NEVER_OWN = /(?![\t\n])[\p{Cc}\u061c\u180e\u200b\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

	const NAMES = {
		0x00: 'NUL', 0x07: 'BEL', 0x08: 'BS', 0x0d: 'CR', 0x1b: 'ESC', 0x7f: 'DEL', 0xa0: 'NBSP', 0xad: 'SHY',
		0x061c: 'ALM', 0x200b: 'ZWSP', 0x200c: 'ZWNJ', 0x200d: 'ZWJ', 0x200e: 'LRM', 0x200f: 'RLM', 0x2028: 'LS', 0x2029: 'PS',
		0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO', 0x2060: 'WJ',
		0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
	};

	/** Creates the mark that replaces a character: `U+202E RLO`. */
	function mark( character ) {
		const code = character.codePointAt( 0 );
		const number = 'U+' + code.toString( 16 ).toUpperCase().padStart( 4, '0' );
		return NAMES[ code ] ? number + ' ' + NAMES[ code ] : number;
	}

	/** Removes terminal control sequences. A lone carriage return becomes a line end. */
	function plain( value ) {
		return String( value ?? '' ).replace( /\r\n/g, '\n' ).replace( TERMINAL, '' );
	}

	/** Returns text for places without elements: attributes, titles, screen reader messages. */
	function flat( value ) {
		return plain( value ).replace( HIDDEN, ( character ) => '[' + mark( character ) + ']' );
	}

	/**
	 * Returns a text of the screen itself for a text node or an attribute. A part of a guest that did not pass node()
	 * or flat() can then neither turn the text nor hide in it.
	 */
	function own( value ) {
		return String( value ).replace( NEVER_OWN, ( character ) => '[' + mark( character ) + ']' );
	}

	/**
	 * Returns a document fragment with the text, in which a visible mark replaces each invisible character.
	 *
	 * @param {*}      value Text to show.
	 * @param {string} kind  'output' removes terminal sequences; 'exact' shows them as marks.
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

	/** Decodes base64 to text; invalid UTF-8 becomes U+FFFD. */
	function decoded( base64 ) {
		const bytes = Uint8Array.from( window.atob( String( base64 ) ), ( character ) => character.charCodeAt( 0 ) );
		return new TextDecoder().decode( bytes );
	}

	/** Returns the first characters of an id: enough to distinguish ids and to use on the command line. */
	function short( id ) {
		return flat( id ).replace( /^(artifact-bundle-sha256-|run_)/, '' ).slice( 0, 12 );
	}

	/** Returns how long ago a point in time was, as text. */
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

	/** Returns a duration as text. */
	function duration( milliseconds ) {
		if ( milliseconds < 1000 ) {
			/* translators: %s: number of milliseconds. */
			return sprintf( __( '%s ms', 'codebox' ), Math.round( milliseconds ) );
		}
		/* translators: %s: number of seconds. */
		return sprintf( __( '%s s', 'codebox' ), ( milliseconds / 1000 ).toFixed( 1 ) );
	}

	/** Formats a number in the language of the page. */
	function number( value ) {
		return new Intl.NumberFormat( document.documentElement.lang || 'en' ).format( value );
	}

	/** Returns "1 file", "3 files". */
	function files( count ) {
		/* translators: %s: number of files. */
		return sprintf( _n( '%s file', '%s files', count, 'codebox' ), number( count ) );
	}

	/** Returns the translated sentence for a code of `summary_detail`; '' for an unknown code. */
	function sentence( code ) {
		switch ( code ) {
			case 'agent_succeeded':
				return __( 'The agent succeeded', 'codebox' );
			case 'recipe_succeeded':
				return __( 'The recipe succeeded', 'codebox' );
			case 'sandbox_ended':
				return __( 'The sandbox ended well', 'codebox' );
			case 'command_succeeded':
				return __( 'The command succeeded', 'codebox' );
			case 'no_change':
				return __( 'The agent succeeded and changed no file', 'codebox' );
			case 'partial':
				return __( 'The work is partial', 'codebox' );
			case 'blocked':
				return __( 'The run is blocked', 'codebox' );
			case 'denied':
				return __( 'The policy refused the run', 'codebox' );
			case 'failed':
				return __( 'The run failed', 'codebox' );
			case 'timed_out':
				return __( 'The run timed out', 'codebox' );
			case 'cancelled':
				return __( 'The run was cancelled', 'codebox' );
			case 'interrupted_held':
				return __( 'the supervisor of this run died while the sandbox was kept open for commands: the bundle lists the commands; of the changed files, only the snapshots are left', 'codebox' );
			case 'interrupted_secret':
				return __( 'the supervisor of this run died after its guest had ended; the changes made in the guest contain a secret and are not in the bundle: run again', 'codebox' );
			case 'interrupted_change':
				return __( 'the supervisor of this run died after its guest had ended; the changes are in a bundle that was not checked and cannot be approved: run again', 'codebox' );
			case 'interrupted_journal':
				return __( 'the supervisor of this run died before the changes of its guest were saved; only the journal of the run is left: run again', 'codebox' );
			case 'interrupted_empty':
				return __( 'the supervisor of this run died before anything ran in its sandbox; run again', 'codebox' );
		}
		return '';
	}

	/**
	 * Describes the result of a run in the reader's language. An unknown code falls back to the runner's
	 * English sentence; the reason is an English error message.
	 *
	 * @param {Object} row Run, bundle, or a document of one.
	 */
	function summary( row ) {
		const detail = row.summary_detail || row.summaryDetail || {};
		let said = sentence( detail.code );
		if ( ! said ) {
			return row.summary || '';
		}
		const { added, modified, deleted, checks_total: checks, checks_passed: passed, reason, supervisor_died: died } = detail.args || {};
		if ( reason ) {
			/* translators: 1: what a run came to, 2: why. */
			said = sprintf( __( '%1$s: %2$s', 'codebox' ), said, reason );
		}
		if ( undefined !== added ) {
			const total = added + modified + deleted;
			let changed = __( 'no file changed', 'codebox' );
			if ( total ) {
				/* translators: 1: number of files, 2: of them new, 3: changed, 4: removed. */
				changed = sprintf( _n( '%1$s file changed: %2$s added, %3$s modified, %4$s deleted', '%1$s files changed: %2$s added, %3$s modified, %4$s deleted', total, 'codebox' ), number( total ), number( added ), number( modified ), number( deleted ) );
			}
			if ( checks ) {
				/* translators: 1: number of checks that passed, 2: number of checks. */
				const tested = sprintf( _n( '%1$s of %2$s check passed', '%1$s of %2$s checks passed', checks, 'codebox' ), number( passed ), number( checks ) );
				/* translators: 1: what a run came to, 2: how many files changed, 3: how many checks passed. */
				said = sprintf( __( '%1$s (%2$s; %3$s).', 'codebox' ), said, changed, tested );
			} else if ( 'no_change' === detail.code ) {
				/* translators: %s: what a run came to. */
				said = sprintf( __( '%s.', 'codebox' ), said );
			} else {
				/* translators: 1: what a run came to, 2: how many files changed. */
				said = sprintf( __( '%1$s (%2$s).', 'codebox' ), said, changed );
			}
		}
		/* translators: %s: what a run came to. */
		return died ? sprintf( __( '%s (the supervisor died after it had written the bundle)', 'codebox' ), said ) : said;
	}

	codebox.text = { plain, flat, own, node, decoded, short, ago, duration, number, files, summary };
} )( ( window.wpCodebox = window.wpCodebox || {} ), window.wp );
