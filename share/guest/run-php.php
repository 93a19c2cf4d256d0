<?php
/**
 * Loads WordPress, then runs the PHP file in the first argument; `-` reads the program from standard input.
 *
 * The file runs in the global scope, like a plugin file or with `wp eval-file`; the remaining arguments are
 * its `$argv`. An uncaught error ends the program with status 255, an unreadable file with status 2.
 * CODEBOX_DIAGNOSTICS selects the diagnostics to record and their file.
 *
 * @package WPCodebox
 */

if ( '-' === ( $argv[1] ?? '' ) ) {
	$argv[1] = (string) tempnam( sys_get_temp_dir(), 'run-php-' );
	register_shutdown_function( 'unlink', $argv[1] );
	file_put_contents( $argv[1], stream_get_contents( STDIN ) );
}

if ( ! isset( $argv[1] ) || ! is_file( $argv[1] ) || ! is_readable( $argv[1] ) ) {
	fwrite( STDERR, "usage: php run-php.php FILE [ARGUMENT...]: FILE must be readable in the guest\n" );
	exit( 2 );
}

$_SERVER['HTTP_HOST']      = $_SERVER['HTTP_HOST'] ?? 'localhost';
$_SERVER['REQUEST_METHOD'] = $_SERVER['REQUEST_METHOD'] ?? 'GET';
$_SERVER['REQUEST_URI']    = $_SERVER['REQUEST_URI'] ?? '/';

array_shift( $argv );
$argc            = count( $argv );
$_SERVER['argv'] = $argv;
$_SERVER['argc'] = $argc;

if ( false !== getenv( 'CODEBOX_DIAGNOSTICS' ) ) {
	require __DIR__ . '/diagnostics.php';
}

require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';

require $argv[0];
