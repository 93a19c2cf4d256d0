<?php
/**
 * Loads WordPress as somebody who is logged in.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';

/** Stands for the first administrator, whoever it is; no login has such a character. */
const ADMINISTRATOR = '(administrator)';

/**
 * Has WordPress find a session of a user when it loads, as a browser's cookies would make it.
 *
 * Call it before WordPress is loaded.
 *
 * @param string $user    Id, login or e-mail address; empty: nobody is logged in.
 * @param string $session Name of a session that wordpress.session made; empty: a new one.
 * @return \Closure(): ?int The id of this user, once WordPress is loaded; null for nobody.
 */
function log_in( string $user, string $session = '' ): \Closure {
	$id    = null;
	$asked = static function () use ( &$id ): ?int {
		return $id;
	};
	if ( '' === $user && '' === $session ) {
		return $asked;
	}
	before_wordpress(
		'plugins_loaded',
		static function () use ( $user, $session, &$id ): void {
			try {
				if ( '' !== $session ) {
					$id = Sessions::become( $session, $user )->ID;
					foreach ( explode( '; ', Sessions::header( $session ) ) as $pair ) {
						list( $name, $value ) = explode( '=', $pair, 2 ) + array( '', '' );

						$_COOKIE[ $name ] = rawurldecode( $value );
					}
					forget_user();
					return;
				}
				$id = ADMINISTRATOR === $user ? Users::administrator()->ID : Users::get( $user )->ID;
			} catch ( Refusal $refusal ) {
				finish( static fn () => throw $refusal );
			}
			$end   = time() + HOUR_IN_SECONDS;
			$token = \WP_Session_Tokens::get_instance( $id )->create( $end );

			$_COOKIE[ AUTH_COOKIE ]        = wp_generate_auth_cookie( $id, $end, 'auth', $token );
			$_COOKIE[ SECURE_AUTH_COOKIE ] = wp_generate_auth_cookie( $id, $end, 'secure_auth', $token );
			$_COOKIE[ LOGGED_IN_COOKIE ]   = wp_generate_auth_cookie( $id, $end, 'logged_in', $token );
			forget_user();
		}
	);
	return $asked;
}

/**
 * Has WordPress determine the current user again. A plugin that asks for it while the session is
 * made, as on the hook attach_session_information, does so before the cookies are set, and
 * WordPress caches user 0.
 */
function forget_user(): void {
	$GLOBALS['current_user'] = null;
}

/**
 * Adds a callback to a hook before WordPress is loaded.
 *
 * @param string   $hook      Name of the hook.
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
