<?php
/**
 * Router of PHP's built-in web server: what a web server's rewrite rules and denials would do.
 *
 * `php -S 127.0.0.1:PORT -t /wordpress /opt/codebox/guest/preview-router.php` serves the guest's
 * WordPress: its scripts, its static files, pretty permalinks. Never served: dot files, the
 * configuration, databases, sources under another name, listings of directories.
 *
 * WordPress takes the visitor's origin for its own address, whatever its database says: it comes
 * in the header `X-Codebox-Origin` from the program in front, else it is `http://` and the
 * request's host. `/.codebox/ready` without that header answers whether this is the server;
 * `/.codebox/login` with the header `X-Codebox-Login` signs in. No visitor can send either header.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

require_once __DIR__ . '/preview/site.php';

$codebox_site = new Site( rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress' );

if ( $codebox_site->is_probe() ) {
	header( 'Content-Type: text/plain' );
	echo (string) getenv( 'CODEBOX_SITE_NONCE' );
	return true;
}

if ( $codebox_site->is_login() ) {
	unset( $codebox_site );
	// In the global scope, which is WordPress's.
	require __DIR__ . '/preview/login.php';
	return true;
}

$codebox_script = $codebox_site->answer();
unset( $codebox_site );
if ( null === $codebox_script ) {
	return true;
}

unset( $codebox_script );
chdir( dirname( $_SERVER['SCRIPT_FILENAME'] ) );
// In the global scope, which is WordPress's.
require $_SERVER['SCRIPT_FILENAME'];
return true;
