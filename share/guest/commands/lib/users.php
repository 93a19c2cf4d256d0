<?php
/**
 * Users of the guest's site; selects the user as whom a command acts.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/fixtures.php';
require_once __DIR__ . '/sessions.php';

/**
 * Finds and creates users, and changes the current user.
 */
final class Users {

	/**
	 * Finds a user by the name of a fixture user, login, email address or id; null when there is none.
	 *
	 * @param string $reference Name of a fixture user, login, e-mail address or id.
	 */
	public static function find( string $reference ): ?\WP_User {
		$fixture = Fixtures::user( $reference );
		$user    = null === $fixture ? false : get_user_by( 'id', $fixture );
		$user    = $user ? $user : get_user_by( 'login', $reference );
		$user    = $user ? $user : ( str_contains( $reference, '@' ) ? get_user_by( 'email', $reference ) : false );
		$user    = $user ? $user : ( ctype_digit( $reference ) ? get_user_by( 'id', (int) $reference ) : false );
		return $user ? $user : null;
	}

	/**
	 * Returns a user by reference; fails when there is none.
	 *
	 * @param string $reference Login, e-mail address or id.
	 * @throws Refusal When the user does not exist.
	 */
	public static function get( string $reference ): \WP_User {
		return self::find( $reference ) ?? throw new Refusal( 'user-missing', sprintf( 'there is no user %s; make one with wordpress.session and role, or with wordpress.wp-cli', Arguments::shown( $reference ) ) );
	}

	/**
	 * Returns the first administrator.
	 *
	 * @throws Refusal When the site has no administrator.
	 */
	public static function administrator(): \WP_User {
		$users = get_users(
			array(
				'role'    => 'administrator',
				'orderby' => 'ID',
				'number'  => 1,
			)
		);
		return $users[0] ?? throw new Refusal( 'user-missing', 'the site has no administrator' );
	}

	/**
	 * Returns a user by reference; creates it with the given role when it does not exist.
	 *
	 * Without a reference, returns the first user with the role, or creates one named after the role.
	 *
	 * @param string $reference Login or email address; may be ''.
	 * @param string $role      Role; '' means administrator when no reference is given, and creates no user.
	 * @throws Refusal When the user does not exist and no role is given, or the role does not exist.
	 */
	public static function ensure( string $reference, string $role ): \WP_User {
		if ( '' !== $role && null === get_role( $role ) ) {
			throw new Refusal( 'role-missing', sprintf( 'there is no role %s; available: %s', Arguments::shown( $role ), implode( ', ', array_keys( wp_roles()->roles ) ) ) );
		}
		if ( '' === $reference ) {
			if ( '' === $role || 'administrator' === $role ) {
				return self::administrator();
			}
			$reference = 'codebox-' . $role;
		}
		$user = self::find( $reference );
		if ( null === $user ) {
			if ( '' === $role ) {
				return self::get( $reference );
			}
			return self::make( $reference, $role );
		}
		if ( '' !== $role && ! in_array( $role, $user->roles, true ) ) {
			throw new Refusal( 'role-differs', sprintf( 'the user %s has the role %s, not %s; leave role out or name another user', $user->user_login, implode( ', ', $user->roles ), $role ) );
		}
		return $user;
	}

	/**
	 * Returns the user for a new session: the one of `user` and `role`. Without both, returns the user of the
	 * existing session that `session` names; without that one, the first administrator.
	 *
	 * @param Arguments $arguments Guest command arguments with `user`, `role` and `session`.
	 * @throws Refusal When the user does not exist.
	 */
	public static function for_session( Arguments $arguments ): \WP_User {
		$session = $arguments->first( 'session' );
		if ( '' === $arguments->first( 'user', 'role' ) && '' !== $session && Sessions::exists( $session ) ) {
			return Sessions::become( $session, '' );
		}
		return self::ensure( $arguments->first( 'user' ), $arguments->first( 'role' ) );
	}

	/**
	 * Sets the current user: the user of the session, else the named user, else the default.
	 *
	 * @param Arguments     $arguments Guest command arguments with `user`, `principal` and `session`.
	 * @param \WP_User|null $otherwise Default user; null for an anonymous call.
	 */
	public static function act( Arguments $arguments, ?\WP_User $otherwise = null ): ?\WP_User {
		$named = $arguments->first( 'user', 'principal' );
		// A principal that is an object has its own reader, see act_as_principal().
		$named = str_starts_with( $named, '{' ) ? '' : $named;
		$user  = '' !== $arguments->first( 'session' ) ? Sessions::become( $arguments->first( 'session' ), $named ) : null;
		$user  = $user ?? ( '' === $named ? $otherwise : self::get( $named ) );
		wp_set_current_user( null === $user ? 0 : $user->ID );
		return $user;
	}

	/**
	 * Describes a user for results; null for an anonymous call.
	 *
	 * @param \WP_User|null $user WordPress user.
	 * @return array{id: int, login: string, roles: list<string>}|null
	 */
	public static function row( ?\WP_User $user ): ?array {
		return null === $user ? null : array(
			'id'    => $user->ID,
			'login' => $user->user_login,
			'roles' => array_values( $user->roles ),
		);
	}

	/**
	 * Creates a user with a random password that is not stored.
	 *
	 * @param string $reference Login or email address.
	 * @param string $role      Role of the user.
	 * @throws Refusal When WordPress refuses.
	 */
	private static function make( string $reference, string $role ): \WP_User {
		$login = sanitize_user( str_contains( $reference, '@' ) ? (string) strstr( $reference, '@', true ) : $reference, true );
		$id    = wp_insert_user(
			array(
				'user_login' => $login,
				'user_email' => str_contains( $reference, '@' ) ? $reference : $login . '@example.org',
				'user_pass'  => bin2hex( random_bytes( 24 ) ),
				'role'       => $role,
			)
		);
		if ( is_wp_error( $id ) ) {
			throw new Refusal( 'user-invalid', sprintf( 'the user %s cannot be made: %s', Arguments::shown( $reference ), $id->get_error_message() ) );
		}
		return self::get( (string) get_userdata( $id )->user_login );
	}
}
