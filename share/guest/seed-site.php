<?php
/**
 * Puts the rows of a fixture that a site seed's scopes choose into the guest's site.
 *
 * Question: {name, file, scopes}. The fixture is JSON: posts, terms, media (rows of fields),
 * options (name to value), users (rows), activePlugins (files), activeTheme (directory). What
 * the scopes do not choose stays out. Users come without names and addresses of their own.
 * Prints {name, created, updated, skipped} with a count for each kind, and the ids that rows of
 * the fixture got here; status 1 when a row could not be made.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/whole.php';
require __DIR__ . '/seed-rows.php';

wp_set_current_user( 1 );
$codebox_file    = rtrim( dirname( ABSPATH ), '/' ) . $codebox_question['file'];
$codebox_fixture = json_decode( (string) file_get_contents( $codebox_file ), true );
if ( ! is_array( $codebox_fixture ) ) {
	fwrite( STDERR, "the fixture of the seed {$codebox_question['name']} is no JSON object\n" );
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
