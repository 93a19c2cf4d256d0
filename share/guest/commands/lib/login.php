<?php
/**
 * Loads WordPress as somebody who is logged in.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Has WordPress find a session of a user when it loads, as a browser's cookies would make it.
 *
 * Call it before WordPress is loaded.
 *
 * @param string $user Id, login or e-mail address; empty: nobody is logged in.
 */
function log_in( string $user ): void {
	if ( '' === $user ) {
		return;
	}
	before_wordpress(
		'plugins_loaded',
		static function () use ( $user ): void {
			$id = find_user( $user );
			if ( null === $id ) {
				finish( static fn () => throw Refusal::input( sprintf( 'there is no user %s; give an id, a login or an e-mail address', Arguments::shown( $user ) ) ) );
			}
			$end   = time() + HOUR_IN_SECONDS;
			$token = \WP_Session_Tokens::get_instance( $id )->create( $end );

			$_COOKIE[ AUTH_COOKIE ]        = wp_generate_auth_cookie( $id, $end, 'auth', $token );
			$_COOKIE[ SECURE_AUTH_COOKIE ] = wp_generate_auth_cookie( $id, $end, 'secure_auth', $token );
			$_COOKIE[ LOGGED_IN_COOKIE ]   = wp_generate_auth_cookie( $id, $end, 'logged_in', $token );
		}
	);
}

/**
 * A user's id.
 *
 * @param string $user Id, login or e-mail address.
 */
function find_user( string $user ): ?int {
	$found = ctype_digit( $user ) ? get_user_by( 'id', (int) $user ) : ( get_user_by( 'login', $user ) ?: get_user_by( 'email', $user ) );
	return $found ? (int) $found->ID : null;
}

/**
 * Adds a callback to a hook before WordPress is loaded.
 *
 * @param string   $hook      Hook.
 * @param \Closure $callback  Callback.
 * @param int      $arguments How many it takes.
 * @param int      $priority  When.
 */
function before_wordpress( string $hook, \Closure $callback, int $arguments = 1, int $priority = PHP_INT_MIN ): void {
	// WordPress makes hooks of such lists when it loads.
	$GLOBALS['wp_filter'][ $hook ][ $priority ][ spl_object_hash( $callback ) ] = array(
		'function'      => $callback,
		'accepted_args' => $arguments,
	);
	// The list holds no reference by itself to what is hashed.
	static $kept = array();
	$kept[]      = $callback;
}
