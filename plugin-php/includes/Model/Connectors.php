<?php
/**
 * WordPress's own connectors.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Reads core's registry (WordPress 7.0) by its public functions, and the credentials by the names
 * that `wp_get_connector()` documents: environment, then constant, then option. Values are asked
 * for when they are needed and kept nowhere.
 */
final class Connectors {

	/** Whether this site wants models at all. */
	public static function ai_is_on(): bool {
		return ! function_exists( 'wp_supports_ai' ) || wp_supports_ai();
	}

	/**
	 * Whether core knows the connector.
	 *
	 * @param string $name Id.
	 */
	public function has( string $name ): bool {
		return function_exists( 'wp_is_connector_registered' ) && function_exists( 'wp_get_connector' ) && '' !== $name && wp_is_connector_registered( $name );
	}

	/**
	 * The connector with its credentials.
	 *
	 * @param string $name Id.
	 */
	public function get( string $name ): Connector {
		if ( ! $this->has( $name ) ) {
			return new Connector( $name, CredentialStatus::Missing, __( 'WordPress knows no such connector.', 'codebox' ) );
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
		$reason     = CredentialStatus::Available === $credential->status ? '' : __( 'Its key is set neither in the environment nor as a constant nor in the settings.', 'codebox' );
		return new Connector( $name, $credential->status, $reason, $provider, '', [ $credential ] );
	}

	/** Why nothing can be used when AI is off. */
	public static function off(): string {
		return __( 'AI is switched off on this site (constant WP_AI_SUPPORT or filter wp_supports_ai).', 'codebox' );
	}

	/**
	 * The credential of a connector.
	 *
	 * @param string               $name Id.
	 * @param array<string, mixed> $auth Its `authentication`.
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
			// An application password; its other sources hold it in this form.
			$stored = $stored['username'] . ':' . $stored['password'];
		}
		return is_string( $stored ) && '' !== trim( $stored ) ? new Credential( $known, CredentialStatus::Available, 'database', trim( $stored ) ) : $found;
	}

	/**
	 * A credential from the environment of this process, else from a constant.
	 *
	 * @param string $name     Name for the run.
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
