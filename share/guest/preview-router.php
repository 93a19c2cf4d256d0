<?php
/**
 * Router script of PHP's built-in web server; replaces a web server's rewrite and deny rules.
 *
 * `php -S 127.0.0.1:PORT -t /wordpress /opt/codebox/guest/preview-router.php` serves the guest's WordPress:
 * its scripts, static files and pretty permalinks. It never serves dot files, the configuration, databases,
 * source files under another suffix, or directory listings.
 *
 * WordPress uses the visitor's origin as its own URL, regardless of its database. The reverse proxy passes
 * the origin in the header `X-Codebox-Origin`; without it, the origin is `http://` and the request's host.
 * `/.codebox/ready` without that header reports that this server is running; `/.codebox/login` with the
 * header `X-Codebox-Login` logs in. Visitors cannot send either header.
 *
 * Each PHP message of a script is a line of standard error (preview/php-errors.php).
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
	// Required in the global scope, because WordPress expects its variables there.
	require __DIR__ . '/preview/login.php';
	return true;
}

$codebox_script = $codebox_site->answer();
unset( $codebox_site );
if ( null === $codebox_script ) {
	return true;
}

require_once __DIR__ . '/preview/php-errors.php';
new Php_Errors( WP_HOME, $_SERVER['REQUEST_METHOD'] . ' ' . strtok( (string) $_SERVER['REQUEST_URI'], '?' ) );

unset( $codebox_script );
chdir( dirname( $_SERVER['SCRIPT_FILENAME'] ) );
// Required in the global scope, because WordPress expects its variables there.
require $_SERVER['SCRIPT_FILENAME'];
return true;
