<?php
/**
 * Creates the fixture rows that a site seed's scopes select.
 *
 * Request: {name, file, scopes}. The fixture is JSON: posts, terms, media (rows of fields), options (value by
 * name), users (rows), activePlugins (files), activeTheme (directory). Rows that no scope selects are
 * skipped. Users are created without their names and email addresses. Prints {name, created, updated,
 * skipped} with a count for each kind, and the new ids of fixture rows; exit status 1 when a row could not be
 * created.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/exit-guard.php';
require __DIR__ . '/seed-rows.php';

wp_set_current_user( 1 );
$codebox_file    = rtrim( dirname( ABSPATH ), '/' ) . $codebox_question['file'];
$codebox_fixture = json_decode( (string) file_get_contents( $codebox_file ), true );
if ( ! is_array( $codebox_fixture ) ) {
	fwrite( STDERR, "the fixture of the seed {$codebox_question['name']} is not a JSON object\n" );
	exit( 1 );
}
$codebox_doing = "the seed {$codebox_question['name']} was made";
$codebox_seed  = new Seed( $codebox_fixture, $codebox_question['scopes'] );
$codebox_seed->run();
$codebox_doing = '';

echo wp_json_encode( array( 'name' => $codebox_question['name'] ) + $codebox_seed->answer() ), "\n";
foreach ( $codebox_seed->problems() as $codebox_problem ) {
	fwrite( STDERR, $codebox_problem . "\n" );
}
exit( $codebox_seed->problems() ? 1 : 0 );
