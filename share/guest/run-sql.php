<?php
/**
 * Runs the statements of a database dump through WordPress's database layer, which translates MySQL for the
 * guest's database.
 *
 * Request: {file: path of the dump}, or the dump in `$codebox_sql`. Prints {statements}. Exit status 1 when
 * a statement fails; its number, beginning and reason are then on standard error.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Splits a dump at semicolons outside of quotes and comments. Comments are left out, except those with code
 * for certain versions of MySQL.
 *
 * @param string $sql Text of the dump.
 * @return string[]
 */
function sql_statements( string $sql ): array {
	$pattern    = "/'(?:[^'\\\\]|\\\\.|'')*+'|\"(?:[^\"\\\\]|\\\\.|\"\")*+\"|`[^`]*+`|--[ \t][^\n]*|--$|#[^\n]*|\\/\\*(?!!).*?\\*\\/|;/ms";
	$statements = array();
	$current    = '';
	$position   = 0;
	while ( preg_match( $pattern, $sql, $found, PREG_OFFSET_CAPTURE, $position ) ) {
		list( $text, $start ) = $found[0];
		$current             .= substr( $sql, $position, $start - $position );
		$position             = $start + strlen( $text );
		if ( ';' === $text ) {
			$statements[] = trim( $current );
			$current      = '';
		} elseif ( in_array( $text[0], array( "'", '"', '`' ), true ) ) {
			$current .= $text;
		} else {
			$current .= ' ';
		}
	}
	$statements[] = trim( $current . substr( $sql, $position ) );
	return array_values( array_filter( $statements, 'strlen' ) );
}

/**
 * Returns whether a statement only sets up the connection of a MySQL client and has no meaning here.
 *
 * @param string $statement Statement of a dump.
 */
function is_session_statement( string $statement ): bool {
	return 1 === preg_match( '/^(?:\/\*!.*\*\/|SET\s|LOCK\s+TABLES|UNLOCK\s+TABLES|DELIMITER|USE\s)/is', $statement );
}

$codebox_text = $codebox_sql ?? file_get_contents( $codebox_question['file'] );
if ( false === $codebox_text ) {
	fwrite( STDERR, "the database dump cannot be read\n" );
	exit( 1 );
}
$codebox_rows = array_values( array_filter( sql_statements( $codebox_text ), fn( string $one ): bool => ! is_session_statement( $one ) ) );
foreach ( $codebox_rows as $codebox_number => $codebox_statement ) {
	$GLOBALS['wpdb']->suppress_errors( true );
	if ( false === $GLOBALS['wpdb']->query( $codebox_statement ) ) {
		$codebox_reason = wp_strip_all_tags( (string) $GLOBALS['wpdb']->last_error );
		fwrite( STDERR, sprintf( "statement %d failed: %s: %s\n", $codebox_number + 1, mb_substr( $codebox_statement, 0, 100 ), mb_substr( $codebox_reason, 0, 500 ) ) );
		exit( 1 );
	}
}
wp_cache_flush();
echo wp_json_encode( array( 'statements' => count( $codebox_rows ) ) ), "\n";
