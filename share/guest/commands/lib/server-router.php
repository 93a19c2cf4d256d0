<?php
/**
 * Router script of the guest's web server: serves an existing file, else passes the request to WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

$path = rawurldecode( (string) parse_url( $_SERVER['REQUEST_URI'], PHP_URL_PATH ) );
if ( 1 === preg_match( '~/\.~', $path ) ) {
	http_response_code( 403 );
	return true;
}
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if ( is_file( $file ) || is_file( rtrim( $file, '/' ) . '/index.php' ) && '/' !== $path ) {
	return false;
}
// PHP applies auto_prepend_file to other scripts, but not to the router script.
require_once __DIR__ . '/server-prepend.php';
unset( $path, $file );
$_SERVER['SCRIPT_NAME']     = '/index.php';
$_SERVER['PHP_SELF']        = '/index.php';
$_SERVER['SCRIPT_FILENAME'] = $_SERVER['DOCUMENT_ROOT'] . '/index.php';
chdir( $_SERVER['DOCUMENT_ROOT'] );
require $_SERVER['DOCUMENT_ROOT'] . '/index.php';
