<?php
/**
 * Connectors registered in WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Reads WordPress's connector registry (WordPress 7.0) through its public functions, and credentials from the
 * sources that `wp_get_connector()` documents: environment, then constant, then option. Values are read on
 * demand and not cached.
 */
final class Connectors {

	/** Checks whether AI features are enabled on this site. */
	public static function ai_is_on(): bool {
		return ! function_exists( 'wp_supports_ai' ) || wp_supports_ai();
	}

	/**
	 * Checks whether WordPress knows the connector.
	 *
	 * @param string $name Connector id.
	 */
	public function has( string $name ): bool {
		return function_exists( 'wp_is_connector_registered' ) && function_exists( 'wp_get_connector' ) && '' !== $name && wp_is_connector_registered( $name );
	}

	/**
	 * Returns the connector with its credentials.
	 *
	 * @param string $name Connector id.
	 */
	public function get( string $name ): Connector {
		if ( ! $this->has( $name ) ) {
			return new Connector( $name, CredentialStatus::Missing, __( 'WordPress has no connector of this name.', 'codebox' ) );
		}
		$connector = (array) wp_get_connector( $name );
		$auth      = (array) ( $connector['authentication'] ?? [] );
		$provider  = 'ai_provider' === ( $connector['type'] ?? '' ) ? $name : '';
		if ( '' !== $provider && ! self::ai_is_on() ) {
			return new Connector( $name, CredentialStatus::Denied, self::off(), $provider );
		}
		if ( 'none' === ( $auth['method'] ?? 'none' ) ) {
			return new Connector( $name, CredentialStatus::NotRequired, '', $provider );
		}
		$credential = $this->credential( $name, $auth );
		$reason     = CredentialStatus::Available === $credential->status ? '' : __( 'The key of the connector is set neither in the environment nor as a constant nor in the settings.', 'codebox' );
		return new Connector( $name, $credential->status, $reason, $provider, '', [ $credential ] );
	}

	/** Returns the error message used while AI features are disabled. */
	public static function off(): string {
		return __( 'AI is switched off on this site (constant WP_AI_SUPPORT or filter wp_supports_ai).', 'codebox' );
	}

	/**
	 * Reads the credential of a connector.
	 *
	 * @param string               $name Connector id.
	 * @param array<string, mixed> $auth Field `authentication` of the connector.
	 */
	private function credential( string $name, array $auth ): Credential {
		$text     = static fn( string $field ): string => is_string( $auth[ $field ] ?? null ) ? $auth[ $field ] : '';
		$variable = $text( 'env_var_name' );
		$constant = $text( 'constant_name' );
		$known    = '' !== $variable ? $variable : ( '' !== $constant ? $constant : strtoupper( (string) preg_replace( '/[^A-Za-z0-9]+/', '_', $name ) ) . '_API_KEY' );
		$found    = self::from_process( $known, $variable, $constant );
		if ( CredentialStatus::Available === $found->status || '' === $text( 'setting_name' ) ) {
			return $found;
		}
		$stored = get_option( $text( 'setting_name' ), '' );
		if ( is_array( $stored ) && is_string( $stored['username'] ?? null ) && is_string( $stored['password'] ?? null ) && '' !== $stored['username'] && '' !== $stored['password'] ) {
			// An application password; environment and constant hold it in the same `user:password` form.
			$stored = $stored['username'] . ':' . $stored['password'];
		}
		return is_string( $stored ) && '' !== trim( $stored ) ? new Credential( $known, CredentialStatus::Available, 'database', trim( $stored ) ) : $found;
	}

	/**
	 * Reads a credential from the environment of this process, else from a constant.
	 *
	 * @param string $name     Environment name used in the run.
	 * @param string $variable Name of the variable, or ''.
	 * @param string $constant Name of the constant, or ''.
	 */
	public static function from_process( string $name, string $variable, string $constant ): Credential {
		$value = '' === $variable ? false : getenv( $variable );
		if ( is_string( $value ) && '' !== trim( $value ) ) {
			return new Credential( $name, CredentialStatus::Available, 'env', trim( $value ) );
		}
		$value = '' !== $constant && defined( $constant ) ? constant( $constant ) : '';
		if ( is_string( $value ) && '' !== trim( $value ) ) {
			return new Credential( $name, CredentialStatus::Available, 'constant', trim( $value ) );
		}
		return new Credential( $name, CredentialStatus::Missing, '' );
	}
}
