<?php
/**
 * Sessions of users of the guest's site, stored in the guest.
 *
 * A session is a guest file with the cookies of a browser, in the storage state format of browser test tools.
 * Cookies never leave the guest: command results contain cookie names without values. They become invalid
 * when the guest ends.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Command;

/**
 * Creates, finds and uses sessions.
 */
final class Sessions {

	/** Directory of the sessions below the guest's root. */
	public const DIRECTORY = '/tmp/codebox-sessions';

	/** Lifetime of a session, in seconds. */
	private const SECONDS = 172800;

	/**
	 * Creates the session that the command's arguments describe.
	 *
	 * @param Arguments $arguments Guest command arguments with `browser-urls` and the session name.
	 * @param \WP_User  $user      WordPress user.
	 * @param string    $named     Argument that holds the session name.
	 * @return array<string, mixed> Session as results report it.
	 */
	public static function of( Arguments $arguments, \WP_User $user, string $named = 'session' ): array {
		$name = $arguments->first( $named );
		return self::make( '' === $name ? 'default' : Fixtures::session( $name ), $user, array_values( array_unique( array( home_url(), ...$arguments->texts( 'browser-urls' ) ) ) ) );
	}

	/**
	 * Logs a user in under a session name; replaces an existing session with that name.
	 *
	 * @param string       $name    Name of the session.
	 * @param \WP_User     $user    WordPress user.
	 * @param list<string> $origins Origins that the cookies are valid for.
	 * @return array<string, mixed> Session as results report it.
	 * @throws Refusal When the session cannot be created.
	 */
	public static function make( string $name, \WP_User $user, array $origins ): array {
		self::check( $name );
		$expires = time() + self::SECONDS;
		$token   = \WP_Session_Tokens::get_instance( $user->ID )->create( $expires );
		$cookies = array();
		foreach ( $origins as $origin ) {
			$scheme = (string) wp_parse_url( $origin, PHP_URL_SCHEME );
			$host   = (string) wp_parse_url( $origin, PHP_URL_HOST );
			if ( ! in_array( $scheme, array( 'http', 'https' ), true ) || '' === $host ) {
				throw new Refusal( 'origin', sprintf( '%s is not an origin; write http://HOST[:PORT]', Arguments::shown( $origin ) ) );
			}
			foreach ( self::cookies( $user, $token, $expires, 'https' === $scheme ) as $cookie ) {
				$cookies[] = $cookie + array( 'domain' => $host );
			}
		}
		$directory = root() . self::DIRECTORY;
		if ( ! is_dir( $directory ) && ! mkdir( $directory, 0700, true ) && ! is_dir( $directory ) ) {
			throw new Refusal( 'disk', self::DIRECTORY . ' cannot be made' );
		}
		$file = $directory . '/' . $name . '.json';
		$kept = array(
			'user'    => $user->ID,
			'token'   => $token,
			'expires' => $expires,
		);
		$state = array(
			'cookies' => $cookies,
			'origins' => array(),
		);
		foreach ( array(
			$file => $kept,
			$directory . '/' . $name . '.storage-state.json' => $state,
		) as $path => $document ) {
			if ( false === file_put_contents( $path, (string) json_encode( $document, JSON_UNESCAPED_SLASHES ) ) || ! chmod( $path, 0600 ) ) {
				throw new Refusal( 'disk', 'the session cannot be written' );
			}
		}
		return array(
			'session'      => $name,
			'user'         => Users::row( $user ),
			'origins'      => array_values( $origins ),
			'cookies'      => array_values( array_unique( array_column( $cookies, 'name' ) ) ),
			'storageState' => self::storage_state( $name ),
			'expiresAt'    => gmdate( 'Y-m-d\TH:i:s\Z', $expires ),
		);
	}

	/**
	 * Returns the guest path of the storage state of a session.
	 *
	 * @param string $name Name of the session.
	 */
	public static function storage_state( string $name ): string {
		return self::DIRECTORY . '/' . $name . '.storage-state.json';
	}

	/**
	 * Returns the guest files of a session, as results report them: {auth, storageState}.
	 *
	 * @param string $name Name of the session.
	 * @return array<string,string>
	 */
	public static function artifacts( string $name ): array {
		return array(
			'auth'         => self::DIRECTORY . '/' . $name . '.json',
			'storageState' => self::storage_state( $name ),
		);
	}

	/**
	 * Returns whether there is a session of this name.
	 *
	 * @param string $name Name of the session.
	 */
	public static function exists( string $name ): bool {
		$name = Fixtures::session( $name );
		return 1 === preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]*$/D', $name ) && is_file( root() . self::DIRECTORY . '/' . $name . '.json' );
	}

	/**
	 * Writes a storage state that a caller gave under a session name, with the cookies of the session's login.
	 *
	 * @param string                                                                                   $name  Name of the session.
	 * @param array{cookies: list<array<string,mixed>>, origins: list<array<string,mixed>>} $given State of the caller.
	 * @param array<string, mixed>                                                                     $row   Session from make(); empty without login.
	 * @return array<string, mixed> Session as results report it.
	 * @throws Refusal When the state cannot be written.
	 */
	public static function merge( string $name, array $given, array $row ): array {
		self::check( $name );
		$directory = root() . self::DIRECTORY;
		$file      = root() . self::storage_state( $name );
		if ( array() !== $row ) {
			$login            = json_decode( (string) file_get_contents( $file ), true );
			$given['cookies'] = array( ...( $login['cookies'] ?? array() ), ...$given['cookies'] );
		}
		if ( ( ! is_dir( $directory ) && ! mkdir( $directory, 0700, true ) && ! is_dir( $directory ) )
			|| false === file_put_contents( $file, (string) json_encode( $given, JSON_UNESCAPED_SLASHES ) ) || ! chmod( $file, 0600 ) ) {
			throw new Refusal( 'disk', 'the storage state cannot be written' );
		}
		return array(
			'session'      => $name,
			'origins'      => array_values( array_unique( array_map( 'strval', array_column( $given['origins'], 'origin' ) ) ) ),
			'cookies'      => array_values( array_unique( array_column( $given['cookies'], 'name' ) ) ),
			'storageState' => self::storage_state( $name ),
		) + $row;
	}

	/**
	 * Acts as the user of a session, with the nonces and capabilities of a browser that has it.
	 *
	 * @param string $name  Name of the session.
	 * @param string $login Required login; '' accepts every user.
	 * @throws Refusal When the session does not exist, has expired, or belongs to another user.
	 */
	public static function become( string $name, string $login ): \WP_User {
		$name = Fixtures::session( $name );
		self::check( $name );
		$file = root() . self::DIRECTORY . '/' . $name . '.json';
		$kept = is_readable( $file ) ? json_decode( (string) file_get_contents( $file ), true ) : null;
		$user = is_array( $kept ) ? get_user_by( 'id', (int) ( $kept['user'] ?? 0 ) ) : false;
		if ( ! $user || ! \WP_Session_Tokens::get_instance( $user->ID )->verify( (string) ( $kept['token'] ?? '' ) ) ) {
			throw new Refusal( 'session-missing', sprintf( 'there is no session %s; make it with wordpress.session', Arguments::shown( $name ) ) );
		}
		if ( '' !== $login && Users::get( $login )->ID !== $user->ID ) {
			throw new Refusal( 'session-differs', sprintf( 'the session %s belongs to %s, not to %s', $name, $user->user_login, $login ) );
		}
		// wp_get_session_token() reads the token from this cookie, and nonces depend on the token.
		$_COOKIE[ LOGGED_IN_COOKIE ] = wp_generate_auth_cookie( $user->ID, (int) $kept['expires'], 'logged_in', (string) $kept['token'] );
		return $user;
	}

	/**
	 * Returns the Cookie header that a session's browser would send to the guest's site.
	 *
	 * @param string $name Name of the session.
	 */
	public static function header( string $name ): string {
		$name = Fixtures::session( $name );
		self::check( $name );
		$state = json_decode( (string) file_get_contents( root() . self::DIRECTORY . '/' . $name . '.storage-state.json' ), true );
		$pairs = array();
		foreach ( (array) ( $state['cookies'] ?? array() ) as $cookie ) {
			if ( ! ( $cookie['secure'] ?? false ) ) {
				$pairs[ $cookie['name'] ] = $cookie['name'] . '=' . rawurlencode( $cookie['value'] );
			}
		}
		return implode( '; ', $pairs );
	}

	/**
	 * Rejects names that are not valid file names.
	 *
	 * @param string $name Name of the session.
	 * @throws Refusal When the name is invalid.
	 */
	private static function check( string $name ): void {
		// A name with this ending would be the file of the storage state of another session.
		if ( 1 !== preg_match( '/^[A-Za-z0-9._-]{1,200}$/D', $name ) || str_ends_with( $name, '.storage-state' ) ) {
			throw new Refusal( 'session-invalid', 'the name of a session has letters, digits, dots, - and _, at most 200, and does not end with .storage-state' );
		}
	}

	/**
	 * Returns WordPress's cookies for a user.
	 *
	 * @param \WP_User $user    WordPress user.
	 * @param string   $token   Session token.
	 * @param int      $expires Expiry as Unix time.
	 * @param bool     $secure  Whether the cookies are for https.
	 * @return list<array<string, mixed>>
	 */
	private static function cookies( \WP_User $user, string $token, int $expires, bool $secure ): array {
		$rows  = array(
			array( $secure ? SECURE_AUTH_COOKIE : AUTH_COOKIE, $secure ? 'secure_auth' : 'auth', ADMIN_COOKIE_PATH ),
			array( $secure ? SECURE_AUTH_COOKIE : AUTH_COOKIE, $secure ? 'secure_auth' : 'auth', PLUGINS_COOKIE_PATH ),
			array( LOGGED_IN_COOKIE, 'logged_in', COOKIEPATH ),
		);
		$found = array();
		foreach ( $rows as list( $name, $scheme, $path ) ) {
			$found[] = array(
				'name'     => $name,
				'value'    => wp_generate_auth_cookie( $user->ID, $expires, $scheme, $token ),
				'path'     => '' === $path ? '/' : $path,
				'expires'  => $expires,
				'httpOnly' => true,
				'secure'   => $secure,
				'sameSite' => 'Lax',
			);
		}
		return $found;
	}
}
