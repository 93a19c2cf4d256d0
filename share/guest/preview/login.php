<?php
/**
 * Logs the visitor of a preview in. The preview server calls it for a login link, which works once.
 *
 * The login hooks do not run: a two-factor plugin would require a code that is unavailable in a sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

$codebox_login = (string) $_SERVER['HTTP_X_CODEBOX_LOGIN'];
unset( $_SERVER['HTTP_X_CODEBOX_LOGIN'] );
$_SERVER['REQUEST_URI'] = '/wp-login.php';

require dirname( __DIR__, 4 ) . '/wordpress/wp-load.php';

( static function ( string $login ): void {
	if ( '' === $login && is_multisite() ) {
		$login = (string) ( get_super_admins()[0] ?? '' );
	}
	$user = '' === $login
		? ( get_users(
			array(
				'role'    => 'administrator',
				'number'  => 1,
				'orderby' => 'ID',
			)
		)[0] ?? false )
		: get_user_by( 'login', $login );
	nocache_headers();
	if ( ! $user instanceof WP_User ) {
		http_response_code( 404 );
		header( 'Content-Type: text/plain; charset=UTF-8' );
		echo '' === $login ? "The site of the sandbox has no administrator.\n" : "The site of the sandbox has no user of this name.\n";
		return;
	}
	wp_set_auth_cookie( $user->ID, false );
	wp_safe_redirect( user_can( $user, 'read' ) ? admin_url() : home_url( '/' ) );
} )( $codebox_login );
