<?php
/**
 * Installs plugins and themes from WordPress.org, if the policy of the run lets the guest reach it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/processes.php';

/**
 * Installs a plugin or a theme with WP-CLI, and returns its slug.
 *
 * @param string $kind Kind: plugin or theme.
 * @param string $slug Slug at WordPress.org.
 * @throws Refusal When it cannot be downloaded.
 */
function downloaded( string $kind, string $slug ): string {
	if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/D', $slug ) ) {
		throw new Refusal( "$kind-missing", sprintf( 'there is no %s %s in this guest, and it is not a slug of WordPress.org', $kind, Arguments::shown( $slug ) ) );
	}
	// The variable names the egress bridge; a guest without network has none.
	if ( '' === (string) getenv( 'http_proxy' ) ) {
		throw new Refusal( "$kind-missing", sprintf( 'there is no %1$s %2$s below wp-content/%1$ss, and this guest has no network to download it: mount its directory there, or allow the hosts api.wordpress.org and downloads.wordpress.org in the policy of the run', $kind, Arguments::shown( $slug ) ) );
	}
	$ended = process( array( 'wp', $kind, 'install', $slug ), '', array(), 65536 );
	if ( 0 !== $ended['exitCode'] ) {
		throw new Refusal( "$kind-refused", sprintf( 'WP-CLI could not install the %s %s: %s', $kind, $slug, cut( trim( (string) strrchr( "\n" . trim( $ended['stderr'] ), "\n" ) ), 500 ) ) );
	}
	return $slug;
}
