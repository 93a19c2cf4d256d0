<?php
/**
 * Sessions of users of the guest's site, kept in the guest.
 *
 * A session is a file of the guest with the cookies a browser would have, in the form that
 * browsers for tests take as storage state. Cookies never leave the guest: results of commands
 * name them, with no values. They end with the guest, like the site they are for.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Command;

/**
 * Makes and finds sessions.
 */
final class Sessions {

	/** Where they are, below the guest's root. */
	public const DIRECTORY = '/tmp/codebox-sessions';

	/** How long one lasts, seconds. */
	private const SECONDS = 172800;

	/**
	 * Makes the session that a call asks for.
	 *
	 * @param Arguments $arguments Argument browser-urls, and the one with the name.
	 * @param \WP_User  $user      WordPress user.
	 * @param string    $named     Argument that holds the name of the session.
	 * @return array<string, mixed> The session as results show it.
	 */
	public static function of( Arguments $arguments, \WP_User $user, string $named = 'session' ): array {
		$name = $arguments->first( $named );
		return self::make( '' === $name ? 'default' : $name, $user, array_values( array_unique( array( home_url(), ...$arguments->texts( 'browser-urls' ) ) ) ) );
	}

	/**
	 * Logs a user in under a name; a session of that name is replaced.
	 *
	 * @param string       $name    Name.
	 * @param \WP_User     $user    WordPress user.
	 * @param list<string> $origins Origins the cookies are for.
	 * @return array<string, mixed> The session as results show it.
	 * @throws Refusal When it cannot be made.
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
				throw new Refusal( 'origin', sprintf( '%s is no origin; write http://HOST[:PORT]', Arguments::shown( $origin ) ) );
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
			'storageState' => self::DIRECTORY . '/' . $name . '.storage-state.json',
			'expiresAt'    => gmdate( 'Y-m-d\TH:i:s\Z', $expires ),
		);
	}

	/**
	 * Acts as the user of a session: nonces and capabilities are those a browser with it has.
	 *
	 * @param string $name  Name.
	 * @param string $login Who it must be; empty takes whoever it is.
	 * @throws Refusal When there is no such session, it is over, or it is somebody else's.
	 */
	public static function become( string $name, string $login ): \WP_User {
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
		// wp_get_session_token() reads it from here, and with it every nonce.
		$_COOKIE[ LOGGED_IN_COOKIE ] = wp_generate_auth_cookie( $user->ID, (int) $kept['expires'], 'logged_in', (string) $kept['token'] );
		return $user;
	}

	/**
	 * The Cookie header a session's browser would send to the guest's own site.
	 *
	 * @param string $name Name.
	 */
	public static function header( string $name ): string {
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
	 * Refuses names that are no file names.
	 *
	 * @param string $name Name.
	 * @throws Refusal When it is none.
	 */
	private static function check( string $name ): void {
		if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/D', $name ) ) {
			throw new Refusal( 'session-invalid', 'the name of a session has letters, digits, - and _, at most 64' );
		}
	}

	/**
	 * The cookies of WordPress for a user.
	 *
	 * @param \WP_User $user    WordPress user.
	 * @param string   $token   Token of the session.
	 * @param int      $expires When they end.
	 * @param bool     $secure  Whether they are for https.
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
