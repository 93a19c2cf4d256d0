<?php
/**
 * Loads WordPress, then runs the PHP file named by the first argument; `-` reads the
 * program from standard input.
 *
 * The file runs in the global scope, as a plugin file or `wp eval-file` would; the
 * remaining arguments are its `$argv`. A thrown error ends the program with status 255,
 * a file that cannot be read with status 2. CODEBOX_DIAGNOSTICS names what is recorded beside
 * the output, and where.
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
