<?php
/**
 * Splits a MySQL dump into statements.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

/**
 * Statements of one dump, in order, without comments between them.
 */
final class Sql_Dump {

	/**
	 * Beginnings of statements that configure the server, choose a database or lock tables. Only one program uses the guest's
	 * database during an import, so they are skipped.
	 */
	private const SKIPPED = '/^(?:SET\b|(?:UN)?LOCK\s+TABLES\b|START\s+TRANSACTION\b|BEGIN$|COMMIT\b|USE\b|ALTER\s+TABLE\s+\S+\s+(?:DIS|EN)ABLE\s+KEYS\b)/i';

	/**
	 * Matches, at one position: a quoted text, a comment, a version comment of MySQL, or the end of a statement.
	 */
	private const TOKEN = '~\G(?:[^\'"`/#;-]+|(?<quote>\'(?:[^\'\\\\]|\\\\.|\'\')*+\'|"(?:[^"\\\\]|\\\\.|"")*+"|`[^`]*+`)|/\*!(?:M!)?\d*(?<version>.*?)\*/|(?<comment>/\*.*?\*/|--(?=\s|$)[^\n]*|#[^\n]*)|(?<end>;)|(?<open>[\'"`]|/\*)|[/-])~s';

	/**
	 * Takes the dump.
	 *
	 * @param string $text SQL text.
	 */
	public function __construct( private readonly string $text ) {}

	/**
	 * Returns each statement that must run with the line on which it begins.
	 *
	 * @return \Generator<int, string> Statement by line.
	 * @throws \RuntimeException When the text is not a sequence of statements.
	 */
	public function statements(): \Generator {
		$at    = 0;
		$size  = strlen( $this->text );
		$line  = 1;
		$begun = null;
		$text  = '';
		while ( $at < $size ) {
			if ( 1 !== preg_match( self::TOKEN, $this->text, $token, 0, $at ) ) {
				throw new \RuntimeException( "line $line: the text cannot be read as SQL" );
			}
			if ( '' !== ( $token['open'] ?? '' ) ) {
				throw new \RuntimeException( "line $line: a quote or comment is not closed" );
			}
			$at += strlen( $token[0] );
			if ( '' !== ( $token['end'] ?? '' ) ) {
				yield from $this->statement( $begun ?? $line, $text );
				$text  = '';
				$begun = null;
			} elseif ( '' === ( $token['comment'] ?? '' ) ) {
				// MySQL executes the text of a version comment.
				$part = '' !== ( $token['version'] ?? '' ) ? $token['version'] : $token[0];
				if ( null === $begun && '' !== trim( $part ) ) {
					$begun = $line + substr_count( $part, "\n", 0, strlen( $part ) - strlen( ltrim( $part ) ) );
				}
				$text .= $part;
			}
			$line += substr_count( $token[0], "\n" );
		}
		yield from $this->statement( $begun ?? $line, $text );
	}

	/**
	 * Returns the statement if it must run.
	 *
	 * @param int    $line Line on which it begins.
	 * @param string $text Text of the statement.
	 * @return \Generator<int, string>
	 * @throws \RuntimeException When the text needs a client program of MySQL.
	 */
	private function statement( int $line, string $text ): \Generator {
		$text = trim( $text );
		if ( 1 === preg_match( '/^(?:DELIMITER|SOURCE|\\\\\S)/i', $text ) ) {
			throw new \RuntimeException( "line $line: DELIMITER and other commands of the program mysql are not SQL; export without triggers and routines (mysqldump --skip-triggers)" );
		}
		if ( '' !== $text && 1 !== preg_match( self::SKIPPED, $text ) ) {
			yield $line => $text;
		}
	}
}
