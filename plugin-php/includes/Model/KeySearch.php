<?php
/**
 * Finds the API key of a provider.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Search order: secrets that the task names, inherited connectors, the provider's connector, environment and
 * constants, a plugin of this site. A key from any source but the first is used only if it may be sent to the
 * provider's base URL; a plugin that names no hosts for its key allows this.
 */
final class KeySearch {

	/**
	 * Creates the search with its dependencies.
	 *
	 * @param Connectors $connectors Connectors registered in WordPress.
	 */
	public function __construct( private readonly Connectors $connectors ) {}

	/**
	 * Searches all sources for the secret with a name. Returns it and, when it is denied, the reason.
	 *
	 * @param Provider                 $provider  Model provider.
	 * @param string                   $name      Environment name of the secret.
	 * @param array<string, mixed>     $input     Task input.
	 * @param array<string, Connector> $inherited Connectors whose credentials the task inherits.
	 * @param array<string, string>    $brought   Values of the secrets that the task names, by environment name.
	 * @return array{Credential, string}
	 */
	public function find( Provider $provider, string $name, array $input, array $inherited, #[\SensitiveParameter] array $brought ): array {
		if ( isset( $brought[ $name ] ) ) {
			return [ new Credential( $name, CredentialStatus::Available, 'secret_env', $brought[ $name ] ), '' ];
		}
		if ( '' === $provider->base_url ) {
			// The task supplied the URL, so only a key supplied with the task may be sent there.
			return [ new Credential( $name, CredentialStatus::Missing, '' ), '' ];
		}
		foreach ( $inherited as $connector ) {
			foreach ( $connector->credentials as $credential ) {
				if ( $credential->name === $name && null !== $credential->value() ) {
					return $this->bound( $credential, $connector, $provider );
				}
			}
		}
		if ( ! Credential::permitted( 'provider', $provider->id, $input ) ) {
			return [ new Credential( $name, CredentialStatus::Denied, '' ), __( 'A plugin of this site does not let this user use the credentials of this provider (filter wp_codebox_can_use_credentials).', 'codebox' ) ];
		}
		if ( '' !== $provider->connector && $this->connectors->has( $provider->connector ) ) {
			$connector = $this->connectors->get( $provider->connector );
			foreach ( $connector->credentials as $credential ) {
				if ( $credential->name === $name && CredentialStatus::Missing !== $credential->status ) {
					return $this->bound( $credential, $connector, $provider );
				}
			}
		}
		$allowed = KeyHosts::may_get( $name, $provider->base_url );
		$found   = $allowed && $name === $provider->key_env ? Connectors::from_process( $name, $name, $name ) : new Credential( $name, CredentialStatus::Missing, '' );
		if ( CredentialStatus::Available === $found->status ) {
			return [ $found, '' ];
		}
		/** This filter is documented in plugin-php/includes/Run/SecretChoice.php */
		$values = apply_filters( 'wp_codebox_secret_values', [], [ $name ], get_current_user_id() );
		$row    = is_array( $values ) && is_array( $values[ $name ] ?? null ) ? $values[ $name ] : [];
		$value  = $row['value'] ?? null;
		$hosts  = (array) ( $row['hosts'] ?? [] );
		if ( is_string( $value ) && '' !== $value && ( [] === $hosts || KeyHosts::names( $hosts, $provider->base_url ) ) ) {
			return [ new Credential( $name, CredentialStatus::Available, 'hook', $value ), '' ];
		}
		return $allowed || $name !== $provider->key_env ? [ $found, '' ] : [ $found->as( CredentialStatus::Denied ), self::elsewhere( $name ) ];
	}

	/**
	 * Returns the error message for a key that must not be sent to a URL.
	 *
	 * @param string $name Name of the environment variable that holds the API key.
	 */
	public static function elsewhere( string $name ): string {
		/* translators: %s: name of an environment variable. */
		return Sentence::of( __( 'The key %1$s may not go to the base URL of this provider. The operator can allow it with the entry %1$s@host in php.ini (wp_codebox.provider_keys) or wp-config.php (WP_CODEBOX_PROVIDER_KEYS).', 'codebox' ), $name );
	}

	/**
	 * Returns a connector's key, denied when it must not be sent to the provider's base URL.
	 *
	 * @param Credential $credential Credential with the key.
	 * @param Connector  $connector  Connector that holds the key.
	 * @param Provider   $provider   Provider that the key would be sent to.
	 * @return array{Credential, string}
	 */
	private function bound( Credential $credential, Connector $connector, Provider $provider ): array {
		return KeyHosts::may_get_from( $connector->name, $credential->name, $provider->base_url, $connector->hosts )
			? [ $credential, '' ]
			: [ $credential->as( CredentialStatus::Denied ), self::elsewhere( $credential->name ) ];
	}
}
