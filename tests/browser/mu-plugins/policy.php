<?php
/**
 * A strict content security policy on the admin screen, as a host might set it: scripts only
 * from the site or with the nonce of this response. WordPress core prints some scripts without
 * a nonce, and these are blocked. Sinks that turn text into markup or code are reported.
 */

declare(strict_types=1);

if ( ! is_admin() || 'wp-codebox' !== ( $_GET['page'] ?? '' ) ) {
	return;
}
$nonce = bin2hex( random_bytes( 12 ) );
// Sent after core's header of the same name and in addition to it.
add_action(
	'admin_init',
	static function () use ( $nonce ): void {
		header( "Content-Security-Policy: script-src 'self' 'nonce-$nonce'; object-src 'none'; base-uri 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'", false );
		header( "Content-Security-Policy-Report-Only: require-trusted-types-for 'script'", false );
	},
	PHP_INT_MAX
);
foreach ( [ 'wp_script_attributes', 'wp_inline_script_attributes' ] as $filter ) {
	add_filter( $filter, static fn( array $attributes ): array => $attributes + [ 'nonce' => $nonce ] );
}
