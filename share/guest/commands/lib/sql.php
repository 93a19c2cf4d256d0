<?php
/**
 * Checks that an SQL text is one statement that reads, or one that writes rows.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * What an SQL statement may do.
 */
enum Sql_Kind {
	/** SELECT, SHOW or DESCRIBE. */
	case Read;
	/** INSERT, REPLACE, UPDATE or DELETE. */
	case Write;
}

/**
 * One statement that reads, or one that writes rows. Keywords are searched outside of quotes and comments only.
 */
final class Sql {
	/** Maximum length of a statement, in bytes. */
	private const BYTES = 65536;

	/** The statement with the text in quotes and comments replaced by blanks, at the same byte positions. */
	private readonly string $bare;

	/** The statement as given. */
	private readonly string $text;

	/**
	 * Accepts the text when it is one statement of the kind.
	 *
	 * @param string   $text SQL text to check.
	 * @param Sql_Kind $kind What the statement may do.
	 */
	public function __construct( string $text, Sql_Kind $kind = Sql_Kind::Read ) {
		$text = rtrim( trim( $text ), "; \t\r\n" );
		if ( '' === $text || strlen( $text ) > self::BYTES ) {
			throw Refusal::input( sprintf( 'sql must be a statement of at most %d bytes', self::BYTES ) );
		}
		$this->text = $text;
		// MySQL executes a version comment (/*! … */), so it is not blanked out.
		$pattern    = '~\'(?:[^\'\\\\]|\\\\.|\'\')*\'|"(?:[^"\\\\]|\\\\.|"")*"|`[^`]*`|/\*(?!!).*?\*/|(?:--\s|#)[^\n]*~s';
		$bare       = preg_replace_callback( $pattern, static fn ( array $found ): string => str_repeat( ' ', strlen( $found[0] ) ), $text );
		$this->bare = (string) $bare;
		if ( 1 === preg_match( '/[\'"`]|\/\*/', $this->bare ) ) {
			throw Refusal::input( 'sql has a quote or a comment that is not closed, or a version comment' );
		}
		if ( str_contains( $this->bare, ';' ) ) {
			throw Refusal::input( 'sql must be one statement; there is a semicolon in it' );
		}
		if ( Sql_Kind::Write === $kind ) {
			if ( 1 !== preg_match( '/^\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b/i', $this->bare ) ) {
				throw Refusal::input( 'sql of a write must begin with INSERT, REPLACE, UPDATE or DELETE' );
			}
			return;
		}
		if ( 1 !== preg_match( '/^\s*\(*\s*(?:SELECT|WITH|SHOW|DESCRIBE|DESC)\b/i', $this->bare ) ) {
			throw Refusal::input( 'sql must begin with SELECT, SHOW or DESCRIBE; use operation write for a statement that writes' );
		}
		if ( 1 === preg_match( '/\bINTO\b|\bFOR\s+(?:UPDATE|SHARE)\b|\bLOCK\s+IN\b|\b(?:LOAD_FILE|SLEEP|BENCHMARK|GET_LOCK)\s*\(|^\s*WITH\b.*\b(?:INSERT|UPDATE|DELETE|REPLACE)\b/is', $this->bare, $found ) ) {
			throw Refusal::input( sprintf( 'sql has %s, which does more than read', Arguments::shown( strtoupper( trim( cut( $found[0], 30 ) ) ) ) ) );
		}
	}

	/**
	 * Returns the statement with its values, and a row limit when it selects rows.
	 *
	 * @param \wpdb        $db     Database connection.
	 * @param list<scalar> $values Values of the placeholders.
	 * @param int          $most   Maximum number of rows.
	 */
	public function bounded( \wpdb $db, array $values, int $most ): string {
		// A per cent sign within quotes is text, but wpdb would take it for a placeholder.
		$count = preg_match_all( '/%(?:\d+\$)?[dfsFi]/', str_replace( '%%', '  ', $this->bare ) );
		if ( $count !== count( $values ) ) {
			throw Refusal::input( sprintf( 'sql has %d placeholders outside of quotes (%%d, %%f, %%s, %%i), but values has %d', $count, count( $values ) ) );
		}
		$text = $this->text;
		if ( $values ) {
			$text = $db->remove_placeholder_escape( (string) $db->prepare( $this->escaped(), array_map( static fn ( $v ) => is_bool( $v ) ? (int) $v : $v, $values ) ) );
		}
		if ( 1 !== preg_match( '/^\s*\(*\s*(?:SELECT|WITH)\b/i', $this->bare ) ) {
			return $text;
		}
		return 1 === preg_match( '/\bLIMIT\b/i', $this->bare ) ? "SELECT * FROM ( $text ) AS codebox_rows LIMIT $most" : "$text\nLIMIT $most";
	}

	/**
	 * Returns the text for wpdb::prepare(): per cent signs within quotes are doubled.
	 */
	private function escaped(): string {
		$escaped = '';
		$length  = strlen( $this->text );
		for ( $i = 0; $i < $length; $i++ ) {
			$escaped .= '%' === $this->text[ $i ] && ' ' === $this->bare[ $i ] ? '%%' : $this->text[ $i ];
		}
		return $escaped;
	}
}
