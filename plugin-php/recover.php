<?php
/**
 * Takes a change back when the site does not work any more. See DirectApply\RecoveryLink.
 *
 * Loads WordPress without plugins, themes and users, because one of them may be what does not work. Opening
 * the link only shows a button: mail scanners, which open links but press no button, change nothing.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use Throwable;
use WPCodebox\DirectApply\RecoveryLink;

// phpcs:disable WordPress.Security -- No user and no nonce exist here: the token is the authorisation. Texts are constants.
// phpcs:disable WordPress.NamingConventions.PrefixAllGlobals -- SHORTINIT is WordPress's own name.

define( 'SHORTINIT', true );
$wp_codebox_root = __DIR__;
for ( $wp_codebox_depth = 0; $wp_codebox_depth < 8 && ! is_file( $wp_codebox_root . '/wp-load.php' ); ++$wp_codebox_depth ) {
	$wp_codebox_root = dirname( $wp_codebox_root );
}
if ( ! is_file( $wp_codebox_root . '/wp-load.php' ) ) {
	http_response_code( 500 );
	exit( 'WordPress was not found. Take the change back at the shell: wp codebox artifacts rollback' );
}
require $wp_codebox_root . '/wp-load.php';
require_once __DIR__ . '/includes/Autoload.php';
Autoload::register( __DIR__ );

/**
 * Prints the page and ends the request.
 *
 * @param int    $status HTTP status.
 * @param string $text   Sentence.
 * @param string $token  Token for the button, or ''.
 */
function recovery_page( int $status, string $text, string $token = '' ): never {
	http_response_code( $status );
	header( 'Content-Type: text/html; charset=utf-8' );
	header( 'Cache-Control: no-store' );
	header( 'Referrer-Policy: no-referrer' );
	header( 'X-Robots-Tag: noindex' );
	header( "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'" );
	echo '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Recovery</title>';
	echo '<style>body{font:16px/1.5 sans-serif;max-width:34em;margin:4em auto;padding:0 1em}button{font:inherit;padding:.5em 1em}</style></head><body><h1>Recovery</h1>';
	echo '<p>' . htmlspecialchars( $text ) . '</p>';
	if ( '' !== $token ) {
		echo '<form method="post"><input type="hidden" name="token" value="' . htmlspecialchars( $token ) . '"><button>Take the change back</button></form>';
	}
	exit( '</body></html>' );
}

if ( ! extension_loaded( 'wp_codebox' ) ) {
	recovery_page( 500, 'The PHP extension wp_codebox is not loaded, so the change cannot be taken back here.' );
}
$wp_codebox_posted = 'POST' === ( $_SERVER['REQUEST_METHOD'] ?? '' );
$wp_codebox_token  = ( $wp_codebox_posted ? $_POST : $_GET )['token'] ?? '';
$wp_codebox_stored = is_string( $wp_codebox_token ) ? RecoveryLink::of( $wp_codebox_token ) : null;
if ( null === $wp_codebox_stored ) {
	recovery_page( 403, 'This link is not valid any more: it works once, for one hour, and only for the newest change.' );
}
if ( ! $wp_codebox_posted ) {
	recovery_page( 200, 'This takes the last applied change back: every file that it wrote is as before again, except those that somebody changed since.', (string) $wp_codebox_token );
}
try {
	$wp_codebox_result = RecoveryLink::redeem( $wp_codebox_stored );
} catch ( Throwable $thrown ) {
	// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the only trace of a defect.
	error_log( 'wp-codebox: ' . $thrown->getMessage() );
	recovery_page( 500, 'The change could not be taken back; the PHP error log has the reason. At the shell: wp codebox artifacts rollback' );
}
recovery_page( 200, 'restored' === $wp_codebox_result['status'] ? 'Every file is as before the change.' : 'Some files changed since and were left as they are; the others are as before the change.' );
