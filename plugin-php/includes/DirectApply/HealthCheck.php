<?php
/**
 * Pages and logs that show whether this site works.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use WP_Session_Tokens;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Names the pages that are requested before and after a change, and the error log that is searched. The
 * dashboard is requested as the current user, with a session that ends with this request.
 */
final class HealthCheck {

	/** Lifetime of the session in seconds. A request that is killed cannot end it earlier. */
	private const SESSION = 300;

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings $settings Settings with the further pages that the administrator chose.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Returns the options of an apply or roll back.
	 *
	 * @param string $check Secret with which the must-use plugin of RecoveryFile loads the site as WP-Cron does.
	 * @return array{health: array<string, mixed>}
	 */
	public function options( string $check ): array {
		$pages = [
			self::page( __( 'front page', 'codebox' ), home_url( '/' ) ),
			self::page( __( 'login page', 'codebox' ), wp_login_url() ),
			self::page( __( 'REST index', 'codebox' ), rest_url() ),
			self::page( 'admin-ajax', admin_url( 'admin-ajax.php' ) ),
		];
		if ( RecoveryFile::is_current() ) {
			$pages[] = self::page( 'cron', add_query_arg( 'wp_codebox_cron', $check, home_url( '/' ) ) );
		}
		$cookie = $this->session();
		if ( null !== $cookie ) {
			$pages[] = self::page( __( 'dashboard', 'codebox' ), admin_url() ) + [ 'cookie' => $cookie ];
		}
		foreach ( $this->settings->health_urls() as $url ) {
			$pages[] = self::page( $url, $url );
		}
		return [
			'health' => [
				'pages'     => $pages,
				'logs'      => self::logs(),
				'settle_ms' => OpcodeCache::settle_ms(),
			],
		];
	}

	/**
	 * Describes a page.
	 *
	 * @param string $name Name in the report.
	 * @param string $url  Absolute URL.
	 * @return array{name: string, url: string}
	 */
	private static function page( string $name, string $url ): array {
		return [
			'name' => $name,
			'url'  => $url,
		];
	}

	/** Returns the cookie of a short session of the current user; null without a user. */
	private function session(): ?string {
		$user = wp_get_current_user();
		if ( ! $user->exists() ) {
			return null;
		}
		$sessions = WP_Session_Tokens::get_instance( $user->ID );
		$ends     = time() + self::SESSION;
		$token    = $sessions->create( $ends );
		register_shutdown_function( static fn() => $sessions->destroy( $token ) );
		$secure = is_ssl() || str_starts_with( admin_url(), 'https:' );
		$scheme = $secure ? 'secure_auth' : 'auth';
		$name   = $secure ? SECURE_AUTH_COOKIE : AUTH_COOKIE;
		$cookies = [
			$name            => wp_generate_auth_cookie( $user->ID, $ends, $scheme, $token ),
			LOGGED_IN_COOKIE => wp_generate_auth_cookie( $user->ID, $ends, 'logged_in', $token ),
		];
		return implode( '; ', array_map( static fn( string $name, string $value ): string => $name . '=' . rawurlencode( $value ), array_keys( $cookies ), $cookies ) );
	}

	/**
	 * Returns the files into which this PHP writes errors.
	 *
	 * @return list<string>
	 */
	private static function logs(): array {
		$log = (string) ini_get( 'error_log' );
		return str_starts_with( $log, '/' ) && is_file( $log ) ? [ $log ] : [];
	}
}
