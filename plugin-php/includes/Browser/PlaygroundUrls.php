<?php
/**
 * Addresses of the engine of browser sessions.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\UrlParts;

defined( 'ABSPATH' ) || exit;

/** Default: the files of this plugin. Other addresses must be https and of an origin that this site allows. */
final class PlaygroundUrls {

	private const FIELDS = [ 'client_module_url', 'remote_url', 'cors_proxy_url' ];

	/**
	 * Returns the addresses of a session.
	 *
	 * @param array<string, mixed> $contract Assets of the session.
	 * @param array<string, mixed> $given    `playground` of the input.
	 * @return array{client_module_url: string, remote_url: string, cors_proxy_url: string, own: bool} own: whether all are addresses of the assets.
	 * @throws Failure `wp_codebox_browser_url_invalid`, `_url_insecure` or `_origin_not_allowed`.
	 */
	public static function of( array $contract, array $given ): array {
		$urls    = array_intersect_key( $contract, array_flip( self::FIELDS ) ) + array_fill_keys( self::FIELDS, '' );
		$default = self::own_origins( $urls );
		/**
		 * Filters the proxy for downloads of an outside engine. The engine of this plugin uses none.
		 *
		 * @param string               $url        Address; default ''.
		 * @param array<string, mixed> $playground `playground` of the input.
		 */
		$proxy = apply_filters( 'wp_codebox_browser_playground_default_cors_proxy_url', $urls['cors_proxy_url'], $given );
		if ( is_string( $proxy ) && '' !== $proxy ) {
			$urls['cors_proxy_url'] = self::checked( 'playground.cors_proxy_url', $proxy );
		}
		// The assets of an outside engine that this site configures contain no files of this site.
		$own = [] !== ( $contract['codebox'] ?? [] );
		foreach ( self::FIELDS as $field ) {
			$url = trim( (string) ( $given[ $field ] ?? '' ) );
			if ( '' !== $url && $url !== $urls[ $field ] ) {
				$urls[ $field ] = self::allowed( $field, $url, $default );
				$own            = false;
			}
		}
		return $urls + [ 'own' => $own ];
	}

	/**
	 * Returns the address when its origin is allowed.
	 *
	 * @param string       $field   Name of the field.
	 * @param string       $url     Address.
	 * @param list<string> $default Origins of the assets.
	 */
	private static function allowed( string $field, string $url, array $default ): string {
		self::checked( 'playground.' . $field, $url );
		$origins = array_merge( $default, array_filter( defined( 'WP_CODEBOX_BROWSER_PLAYGROUND_ORIGINS' ) ? (array) \WP_CODEBOX_BROWSER_PLAYGROUND_ORIGINS : [], 'is_string' ) );
		if ( 'cors_proxy_url' === $field ) {
			/**
			 * Filters the origins of proxies for downloads of an outside engine.
			 *
			 * @param list<string> $origins Origins; default those of the assets and of the constant
			 *   WP_CODEBOX_BROWSER_PLAYGROUND_ORIGINS.
			 * @param string       $field   Name of the field.
			 * @param string       $url     Address.
			 */
			$origins = apply_filters( 'wp_codebox_browser_playground_cors_proxy_allowed_origins', $origins, $field, $url );
		} else {
			/**
			 * Filters the origins from which a page may load the engine of a browser session.
			 *
			 * @param list<string> $origins Origins; default those of the assets and of the constant
			 *   WP_CODEBOX_BROWSER_PLAYGROUND_ORIGINS.
			 * @param string       $field   Name of the field.
			 * @param string       $url     Address.
			 */
			$origins = apply_filters( 'wp_codebox_browser_playground_allowed_origins', $origins, $field, $url );
		}
		if ( ! in_array( self::origin( $url ), array_map( [ self::class, 'origin' ], array_filter( (array) $origins, 'is_string' ) ), true ) ) {
			throw Failure::because(
				ErrorCode::BrowserOriginNotAllowed,
				/* translators: %s: name of a field. */
				Sentence::of( __( 'The address in %s has an origin that this site does not allow; code from there would run in pages of this site.', 'codebox' ), 'playground.' . $field ),
				[ __( 'Leave the field out to use the browser runtime of this site, or allow the origin with the constant WP_CODEBOX_BROWSER_PLAYGROUND_ORIGINS.', 'codebox' ) ],
				[ 'field' => 'playground.' . $field ]
			);
		}
		return $url;
	}

	/**
	 * Returns an address that is absolute, and encrypted unless it is this machine's.
	 *
	 * @param string $field Path of the field.
	 * @param string $url   Address.
	 * @param bool   $http  Whether it may be unencrypted.
	 * @throws Failure `wp_codebox_browser_url_invalid` or `_url_insecure`.
	 */
	public static function checked( string $field, string $url, bool $http = false ): string {
		$parts = UrlParts::of( $url );
		if ( empty( $parts['host'] ) || isset( $parts['user'] ) || ! in_array( strtolower( $parts['scheme'] ?? '' ), [ 'http', 'https' ], true ) ) {
			/* translators: %s: name of a field. */
			throw Failure::because( ErrorCode::BrowserUrlInvalid, Sentence::of( __( '%s is not an address of the form https://host/path.', 'codebox' ), $field ), [], [ 'field' => $field ] );
		}
		$loopback = BrowserHost::is_loopback( $parts['host'] );
		if ( 'https' !== strtolower( $parts['scheme'] ) && ! $loopback && ! $http ) {
			/* translators: %s: name of a field. */
			throw Failure::because( ErrorCode::BrowserUrlInsecure, Sentence::of( __( '%s is not encrypted; use https.', 'codebox' ), $field ), [], [ 'field' => $field ] );
		}
		return $url;
	}

	/**
	 * Checks whether an address is on one of the hosts that a filter returned.
	 *
	 * @param string $url   Address.
	 * @param mixed  $hosts Result of the filter.
	 */
	public static function is_on( string $url, mixed $hosts ): bool {
		return in_array( strtolower( (string) wp_parse_url( $url, PHP_URL_HOST ) ), array_map( 'strtolower', array_filter( (array) $hosts, 'is_string' ) ), true );
	}

	/**
	 * Returns the addresses of a session for its page.
	 *
	 * @param array<string, mixed> $urls Result of `of()`.
	 * @return array<string, string>
	 */
	public static function shown( array $urls ): array {
		return array_diff_key( $urls, [ 'own' => 1 ] );
	}

	/**
	 * Returns the origins of the assets.
	 *
	 * @param array<string, mixed> $urls Addresses of the assets.
	 * @return list<string>
	 */
	private static function own_origins( array $urls ): array {
		return array_values( array_unique( array_filter( array_map( [ self::class, 'origin' ], array_filter( $urls, 'is_string' ) ) ) ) );
	}

	/**
	 * Returns the origin of an address; '' when it has none.
	 *
	 * @param string $url Address.
	 */
	private static function origin( string $url ): string {
		return '' === BrowserHost::host_of( $url ) || '' === (string) wp_parse_url( $url, PHP_URL_SCHEME ) ? '' : BrowserHost::origin_of( $url );
	}
}
