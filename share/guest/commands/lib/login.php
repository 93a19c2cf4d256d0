<?php
/**
 * Loads WordPress as a logged-in user, as if a browser had sent the cookies.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';

/** Stands for the first administrator where a login name is expected; parentheses cannot occur in one. */
const ADMINISTRATOR = '(administrator)';

/**
 * Logs a user in for the load of WordPress that follows, as with a browser's cookies.
 *
 * Must be called before WordPress is loaded.
 *
 * @param string $user    Id, login or email address; '' for an anonymous request.
 * @param string $session Name of a session created by wordpress.session; '' creates a new one.
 * @return \Closure(): ?int Returns the user's id after WordPress is loaded; null for an anonymous request.
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
 * Makes WordPress determine the current user again. A plugin that reads the current user while the session is
 * created, e.g. in the hook attach_session_information, does so before the cookies are set, and WordPress
 * caches user 0.
 */
function forget_user(): void {
	$GLOBALS['current_user'] = null;
}

/**
 * Adds a callback to a hook before WordPress is loaded.
 *
 * @param string   $hook      Name of the hook.
 * @param \Closure $callback  Callback to add.
 * @param int      $arguments Number of arguments it takes.
 * @param int      $priority  Priority of the callback.
 */
function before_wordpress( string $hook, \Closure $callback, int $arguments = 1, int $priority = PHP_INT_MIN ): void {
	// WordPress converts such arrays to hooks when it loads.
	$GLOBALS['wp_filter'][ $hook ][ $priority ][ spl_object_hash( $callback ) ] = array(
		'function'      => $callback,
		'accepted_args' => $arguments,
	);
	// The hash identifies the closure only while a reference exists, so one is stored here.
	static $kept = array();
	$kept[]      = $callback;
}
