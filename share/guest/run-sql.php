<?php
/**
 * Runs the statements of a database dump through WordPress's database layer, which translates MySQL for the
 * guest's database.
 *
 * Request: {file: path of the dump}, or the dump in `$codebox_sql`. Prints {statements}. Exit status 1 when
 * a statement fails; its line, beginning and reason are then on standard error.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

require_once __DIR__ . '/sql-dump.php';

$codebox_text = $codebox_sql ?? file_get_contents( $codebox_question['file'] );
if ( false === $codebox_text ) {
	fwrite( STDERR, "the database dump cannot be read\n" );
	exit( 1 );
}
$GLOBALS['wpdb']->suppress_errors();
$codebox_count = 0;
try {
	foreach ( ( new Sql_Dump( $codebox_text ) )->statements() as $codebox_line => $codebox_statement ) {
		if ( false === $GLOBALS['wpdb']->query( $codebox_statement ) ) {
			$codebox_reason = wp_strip_all_tags( (string) $GLOBALS['wpdb']->last_error );
			throw new \RuntimeException( sprintf( 'line %d: %s: %s', $codebox_line, mb_substr( $codebox_statement, 0, 100 ), mb_substr( $codebox_reason, 0, 500 ) ) );
		}
		++$codebox_count;
	}
} catch ( \RuntimeException $codebox_thrown ) {
	fwrite( STDERR, 'the SQL cannot be run: ' . $codebox_thrown->getMessage() . "\n" );
	exit( 1 );
}
wp_cache_flush();
echo wp_json_encode( array( 'statements' => $codebox_count ) ), "\n";
