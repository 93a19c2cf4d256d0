<?php
/**
 * Where a key of this site may go, and which models may be private.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WordPress\AiClient\AiClient;
use WPCodebox\ExtensionGate;

defined( 'ABSPATH' ) || exit;

/**
 * The settings of this plugin are a row in the database: write access to it must not give access
 * to this process's environment or to the host's network. So keys have fixed hosts, and additions
 * are read from php.ini only, which the operator writes; where it is empty, from a constant of
 * wp-config.php.
 */
final class KeyHosts {

	/**
	 * Hosts of the built-in providers, by environment name of the key and by id of the connector.
	 */
	private const BUILT_IN = [
		'OPENAI_API_KEY'    => 'api.openai.com',
		'openai'            => 'api.openai.com',
		'ANTHROPIC_API_KEY' => 'api.anthropic.com',
		'anthropic'         => 'api.anthropic.com',
		'GOOGLE_API_KEY'    => 'generativelanguage.googleapis.com',
		'google'            => 'generativelanguage.googleapis.com',
	];

	/**
	 * Whether a key of this process may go to an address.
	 *
	 * @param string $name     Name of the environment variable that holds the API key.
	 * @param string $base_url Base URL of the model API.
	 */
	public static function may_get( string $name, string $base_url ): bool {
		return self::names( array_merge( [ self::BUILT_IN[ $name ] ?? '' ], self::operators( $name ) ), $base_url );
	}

	/**
	 * Whether the key of a connector may go to an address.
	 *
	 * @param string       $connector Id of the connector.
	 * @param string       $name      Name of the environment variable that holds the API key.
	 * @param string       $base_url  Base URL of the model API.
	 * @param list<string> $hosts     Hosts that the connector's resolver names.
	 */
	public static function may_get_from( string $connector, string $name, string $base_url, array $hosts = [] ): bool {
		return self::names( array_merge( [ self::BUILT_IN[ $connector ] ?? '', self::core( $connector ) ], $hosts, self::operators( $name ) ), $base_url );
	}

	/**
	 * Whether the operator lets models lie at an address that is not public.
	 *
	 * @param string $base_url Base URL of the model API.
	 */
	public static function may_be_private( string $base_url ): bool {
		return self::names( self::setting( 'private_models', 'WP_CODEBOX_PRIVATE_MODELS' ), $base_url );
	}

	/**
	 * Whether a list of `host` and `host:port` has the host of an address. An entry without port has all ports.
	 *
	 * @param array<mixed> $hosts    The list.
	 * @param string       $base_url Base URL of the model API.
	 */
	public static function names( array $hosts, string $base_url ): bool {
		$parts = wp_parse_url( $base_url );
		$host  = strtolower( is_array( $parts ) ? $parts['host'] ?? '' : '' );
		$port  = is_array( $parts ) ? $parts['port'] ?? ( 'http' === ( $parts['scheme'] ?? '' ) ? 80 : 443 ) : 0;
		foreach ( '' === $host ? [] : $hosts as $entry ) {
			if ( is_string( $entry ) && in_array( strtolower( $entry ), [ $host, $host . ':' . $port ], true ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Hosts that the operator lists for a key.
	 *
	 * @param string $name Environment name.
	 * @return list<string>
	 */
	private static function operators( string $name ): array {
		$hosts = [];
		foreach ( self::setting( 'provider_keys', 'WP_CODEBOX_PROVIDER_KEYS' ) as $key => $listed ) {
			if ( is_int( $key ) && is_string( $listed ) && str_starts_with( $listed, $name . '@' ) ) {
				$hosts[] = substr( $listed, strlen( $name ) + 1 );
			} elseif ( $key === $name ) {
				array_push( $hosts, ...array_values( (array) $listed ) );
			}
		}
		return $hosts;
	}

	/**
	 * A list of php.ini, else that of a constant.
	 *
	 * @param string $name     Setting without its prefix.
	 * @param string $constant Constant.
	 * @return array<mixed>
	 */
	private static function setting( string $name, string $constant ): array {
		$listed = ExtensionGate::info()[ $name ] ?? [];
		if ( [] !== $listed ) {
			return $listed;
		}
		return defined( $constant ) ? (array) constant( $constant ) : [];
	}

	/**
	 * Host of a provider that core's client knows; '' for others.
	 *
	 * @param string $connector Id of the connector, which is that of the provider.
	 */
	private static function core( string $connector ): string {
		if ( '' === $connector || ! class_exists( AiClient::class ) ) {
			return '';
		}
		try {
			$class = AiClient::defaultRegistry()->getProviderClassName( $connector );
			return method_exists( $class, 'url' ) ? (string) wp_parse_url( $class::url(), PHP_URL_HOST ) : '';
		} catch ( \Throwable ) {
			// It knows no such provider, or its plugin cannot say where it is.
			return '';
		}
	}
}
