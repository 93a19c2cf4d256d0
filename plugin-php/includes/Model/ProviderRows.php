<?php
/**
 * Rows of the option `wp_codebox_providers`, the model providers that an administrator adds.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\UrlParts;

defined( 'ABSPATH' ) || exit;

/**
 * Validates rows and throws error messages for the administrator. A row names the environment variable of a
 * key and never contains a key. The supervisor checks the URL again.
 */
final class ProviderRows {

	private const FIELDS = [ 'api', 'base_url', 'key_env', 'connector', 'models', 'context_tokens', 'max_output_tokens', 'prices' ];
	private const PRICES = [ 'input', 'cached_input', 'output' ];

	/** Fields that a row of a built-in provider may set; its URL is fixed, so its key is sent only there. */
	private const OF_BUILT_IN = [ 'models', 'context_tokens', 'max_output_tokens', 'prices' ];

	/**
	 * Validates rows and returns them by id.
	 *
	 * @param array<mixed> $rows Rows by provider id.
	 * @return array<string, array<string, mixed>>
	 * @throws Failure `wp_codebox_input_invalid` with the problems.
	 */
	public static function read( array $rows ): array {
		$read = [];
		foreach ( $rows as $id => $row ) {
			$id = (string) $id;
			if ( 1 !== preg_match( '/^[a-z0-9][a-z0-9._-]{0,63}$/D', $id ) ) {
				/* translators: %s: id as typed. */
				throw Failure::invalid_input( Sentence::of( __( '"%s" cannot be the id of a model provider; use at most 64 small letters, digits, dots, dashes and underscores, and begin with a letter or digit.', 'codebox' ), Label::clean( $id ) ) );
			}
			if ( ! is_array( $row ) ) {
				/* translators: %s: id of a model provider. */
				throw Failure::invalid_input( Sentence::of( __( 'The model provider "%s" must be an object with "api" and "base_url".', 'codebox' ), $id ) );
			}
			$unknown = array_diff( array_map( 'strval', array_keys( $row ) ), self::FIELDS, [ 'id' ] );
			if ( [] !== $unknown ) {
				/* translators: 1: id of a model provider, 2: field as given, 3: list of fields. */
				throw Failure::invalid_input( Sentence::of( __( 'The model provider "%1$s" has no field "%2$s"; its fields are %3$s. A key itself is never stored here.', 'codebox' ), $id, sanitize_key( (string) reset( $unknown ) ), implode( ', ', self::FIELDS ) ) );
			}
			if ( ! Providers::is_built_in( $id ) ) {
				$read[ $id ] = [ 'id' => $id ] + self::way( $id, $row ) + self::bounds( $id, $row );
			} elseif ( [] === array_intersect_key( array_filter( $row, static fn( mixed $value ): bool => '' !== $value ), array_flip( array_diff( self::FIELDS, self::OF_BUILT_IN ) ) ) ) {
				$read[ $id ] = [ 'id' => $id ] + self::bounds( $id, $row );
			} else {
				/* translators: 1: id of a model provider, 2: list of fields. */
				throw Failure::invalid_input( Sentence::of( __( 'The model provider "%1$s" is built in, with its address and key; its entry may set only %2$s. Use another id for another address.', 'codebox' ), $id, implode( ', ', self::OF_BUILT_IN ) ) );
			}
		}
		return $read;
	}

	/**
	 * Validates rows for storage: like `read()`, and each key must be allowed for its URL.
	 *
	 * @param array<mixed> $rows Rows by provider id.
	 * @return array<string, array<string, mixed>>
	 * @throws Failure `wp_codebox_input_invalid` with the problems.
	 */
	public static function permitted( array $rows ): array {
		$read       = self::read( $rows );
		$connectors = new Connectors();
		foreach ( $read as $id => $row ) {
			$provider = Providers::is_built_in( $id ) ? null : self::provider( $row );
			if ( null === $provider || '' === $provider->key_env ) {
				continue;
			}
			$name = $connectors->get( $provider->connector )->credentials[0]->name ?? $provider->key_env;
			$sent = isset( $row['key_env'] ) ? [ KeyHosts::may_get( $provider->key_env, $provider->base_url ) ] : [];
			if ( '' !== $provider->connector ) {
				$sent[] = KeyHosts::may_get_from( $provider->connector, $name, $provider->base_url );
			}
			if ( in_array( false, $sent, true ) ) {
				/* translators: 1: id of a model provider, 2: why its key does not go there. */
				throw Failure::invalid_input( Sentence::of( __( 'The model provider "%1$s" was not saved. %2$s', 'codebox' ), $id, KeySearch::elsewhere( isset( $row['key_env'] ) ? $provider->key_env : $name ) ) );
			}
		}
		return $read;
	}

	/**
	 * Creates a provider from a validated row.
	 *
	 * @param array<string, mixed> $row Validated row.
	 */
	public static function provider( array $row ): Provider {
		$key = (string) ( $row['key_env'] ?? '' );
		if ( '' === $key && isset( $row['connector'] ) ) {
			$key = strtoupper( (string) preg_replace( '/[^A-Za-z0-9]+/', '_', (string) $row['connector'] ) ) . '_API_KEY';
		}
		return ( new Provider( (string) $row['id'], (string) $row['api'], (string) $row['base_url'], $key, (string) ( $row['connector'] ?? '' ), '' !== $key ) )->with( $row );
	}

	/**
	 * Validates API, URL and key fields; empty fields are omitted.
	 *
	 * @param string       $id  Provider id.
	 * @param array<mixed> $row Row as the caller gave it.
	 * @return array<string, mixed>
	 */
	private static function way( string $id, array $row ): array {
		$api = $row['api'] ?? '';
		if ( ! in_array( $api, Providers::APIS, true ) ) {
			/* translators: 1: id of a model provider, 2: list of values. */
			throw Failure::invalid_input( Sentence::of( __( 'The "api" of the model provider "%1$s" must be one of %2$s.', 'codebox' ), $id, implode( ', ', Providers::APIS ) ) );
		}
		$fields = [
			'api'      => $api,
			'base_url' => self::address( $id, $row['base_url'] ?? '' ),
		];
		$key    = $row['key_env'] ?? '';
		if ( '' !== $key ) {
			if ( ! is_string( $key ) || 1 !== preg_match( '/^[A-Z_][A-Z0-9_]{0,127}$/D', $key ) ) {
				/* translators: %s: id of a model provider. */
				throw Failure::invalid_input( Sentence::of( __( 'The "key_env" of the model provider "%s" must be the name of the variable or constant that holds its key, like EXAMPLE_API_KEY; not the key itself.', 'codebox' ), $id ) );
			}
			$fields['key_env'] = $key;
		}
		$connector = $row['connector'] ?? '';
		if ( '' !== $connector ) {
			if ( ! is_string( $connector ) || 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/D', $connector ) ) {
				/* translators: %s: id of a model provider. */
				throw Failure::invalid_input( Sentence::of( __( 'The "connector" of the model provider "%s" must be the id of a connector.', 'codebox' ), $id ) );
			}
			$fields['connector'] = $connector;
		}
		return $fields;
	}

	/**
	 * Validates models, token limits and prices of one row; empty fields are omitted.
	 *
	 * @param string       $id  Provider id.
	 * @param array<mixed> $row Row as the caller gave it.
	 * @return array<string, mixed>
	 */
	private static function bounds( string $id, array $row ): array {
		$fields = [];
		$models = $row['models'] ?? [];
		foreach ( is_array( $models ) ? $models : [ null ] as $model ) {
			if ( ! is_string( $model ) || 1 !== preg_match( '/^[^\p{C}]{1,200}$/uD', $model ) ) {
				/* translators: %s: id of a model provider. */
				throw Failure::invalid_input( Sentence::of( __( 'The "models" of the model provider "%s" must be a list of names.', 'codebox' ), $id ) );
			}
		}
		if ( [] !== $models ) {
			$fields['models'] = array_values( array_unique( $models ) );
		}
		foreach ( [ 'context_tokens', 'max_output_tokens' ] as $name ) {
			if ( isset( $row[ $name ] ) && '' !== $row[ $name ] ) {
				$fields[ $name ] = self::number( $id, $name, $row[ $name ], 1 );
			}
		}
		if ( ! empty( $row['prices'] ) ) {
			$fields['prices'] = self::prices( $id, $row['prices'] );
		}
		return $fields;
	}

	/**
	 * Validates a base URL: http or https, no user, query or fragment.
	 *
	 * @param string $id    Provider id.
	 * @param mixed  $value Value as the caller gave it.
	 */
	private static function address( string $id, mixed $value ): string {
		$url   = is_string( $value ) ? rtrim( trim( $value ), '/' ) : '';
		$parts = '' === $url || strlen( $url ) > 2000 || 1 === preg_match( '/[\s\p{C}]/u', $url ) ? [] : UrlParts::of( $url );
		if ( ! in_array( $parts['scheme'] ?? '', [ 'http', 'https' ], true ) || empty( $parts['host'] ) || array_diff( array_keys( $parts ), [ 'scheme', 'host', 'port', 'path' ] ) !== [] ) {
			/* translators: %s: id of a model provider. */
			throw Failure::invalid_input( Sentence::of( __( 'The "base_url" of the model provider "%s" must be an http or https address without user, query and fragment, like https://models.example.com/v1.', 'codebox' ), $id ) );
		}
		return $url;
	}

	/**
	 * Converts prices to millionths of a US dollar per million tokens.
	 *
	 * @param string $id    Provider id.
	 * @param mixed  $value Value as the caller gave it.
	 * @return array<string, int>
	 */
	private static function prices( string $id, mixed $value ): array {
		if ( ! is_array( $value ) || array_diff( array_map( 'strval', array_keys( $value ) ), self::PRICES ) !== [] || ! isset( $value['input'], $value['output'] ) ) {
			/* translators: %s: id of a model provider. */
			throw Failure::invalid_input( Sentence::of( __( 'The "prices" of the model provider "%s" must have "input" and "output", and may have "cached_input": millionths of a US dollar per million tokens.', 'codebox' ), $id ) );
		}
		$prices = [];
		foreach ( $value as $name => $number ) {
			$prices[ $name ] = self::number( $id, 'prices.' . $name, $number, 0 );
		}
		return $prices;
	}

	/**
	 * Parses an integer.
	 *
	 * @param string $id    Provider id.
	 * @param string $field Name of the field.
	 * @param mixed  $value Value as the caller gave it.
	 * @param int    $least Smallest accepted value.
	 */
	private static function number( string $id, string $field, mixed $value, int $least ): int {
		if ( ! is_int( $value ) || $value < $least || $value > 1_000_000_000_000 ) {
			/* translators: 1: field, 2: id of a model provider, 3: smallest number. */
			throw Failure::invalid_input( Sentence::of( __( 'The "%1$s" of the model provider "%2$s" must be a whole number from %3$d to 1000000000000.', 'codebox' ), $field, $id, $least ) );
		}
		return $value;
	}
}
