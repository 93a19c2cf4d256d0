<?php
/**
 * Hosts that an API key may be sent to, and private model addresses.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WordPress\AiClient\AiClient;
use WPCodebox\ExtensionGate;
use WPCodebox\UrlParts;

defined( 'ABSPATH' ) || exit;

/**
 * The plugin's settings are rows in the database; write access to the database must not give access to this
 * process's environment or to the host's network. Therefore keys have fixed hosts, and additional hosts come
 * only from php.ini, which the operator writes, or, when php.ini has none, from a constant in wp-config.php.
 */
final class KeyHosts {

	/**
	 * Hosts of the built-in providers, by environment name of the key and by connector id.
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
	 * Checks whether a key from this process's environment may be sent to a URL.
	 *
	 * @param string $name     Name of the environment variable that holds the API key.
	 * @param string $base_url Base URL of the model API.
	 */
	public static function may_get( string $name, string $base_url ): bool {
		return self::names( array_merge( [ self::BUILT_IN[ $name ] ?? '' ], self::operators( $name ) ), $base_url );
	}

	/**
	 * Checks whether the key of a connector may be sent to a URL.
	 *
	 * @param string       $connector Connector id.
	 * @param string       $name      Name of the environment variable that holds the API key.
	 * @param string       $base_url  Base URL of the model API.
	 * @param list<string> $hosts     Hosts that a host plugin allows for the connector's key.
	 */
	public static function may_get_from( string $connector, string $name, string $base_url, array $hosts = [] ): bool {
		return self::names( array_merge( [ self::BUILT_IN[ $connector ] ?? '', self::core( $connector ) ], $hosts, self::operators( $name ) ), $base_url );
	}

	/**
	 * Checks whether the operator allows a model at a private address.
	 *
	 * @param string $base_url Base URL of the model API.
	 */
	public static function may_be_private( string $base_url ): bool {
		return self::names( self::setting( 'private_models', 'WP_CODEBOX_PRIVATE_MODELS' ), $base_url );
	}

	/**
	 * Checks whether a list of `host` and `host:port` contains the host of a URL. An entry without a port
	 * matches every port.
	 *
	 * @param array<mixed> $hosts    List of hosts.
	 * @param string       $base_url Base URL of the model API.
	 */
	public static function names( array $hosts, string $base_url ): bool {
		$parts = UrlParts::of( $base_url );
		$host  = strtolower( (string) ( $parts['host'] ?? '' ) );
		$port  = $parts['port'] ?? ( 'http' === ( $parts['scheme'] ?? '' ) ? 80 : 443 );
		foreach ( '' === $host ? [] : $hosts as $entry ) {
			if ( is_string( $entry ) && in_array( strtolower( $entry ), [ $host, $host . ':' . $port ], true ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Returns the hosts that the operator lists for a key.
	 *
	 * @param string $name Environment name of the key.
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
	 * Reads a list from php.ini, else from a constant.
	 *
	 * @param string $name     Name of the ini setting without its prefix.
	 * @param string $constant Name of the constant.
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
	 * Returns the host of a provider registered in WordPress's AI client; '' for others.
	 *
	 * @param string $connector Connector id, equal to the provider id.
	 */
	private static function core( string $connector ): string {
		if ( '' === $connector || ! class_exists( AiClient::class ) ) {
			return '';
		}
		try {
			$class = AiClient::defaultRegistry()->getProviderClassName( $connector );
			return method_exists( $class, 'url' ) ? (string) wp_parse_url( $class::url(), PHP_URL_HOST ) : '';
		} catch ( \Throwable ) {
			// The AI client does not know the provider, or the provider plugin has no base URL.
			return '';
		}
	}
}
