<?php
/**
 * Resolves the connector that a request names.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Throwable;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Model\Connector;
use WPCodebox\Model\Credential;
use WPCodebox\Model\CredentialStatus;
use WPCodebox\Model\Inheritance;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Fails unless the connector is known, belongs to the requested provider and model, and its credentials are
 * usable and permitted.
 */
final class ConnectorSource {

	/**
	 * Creates the source with its dependencies.
	 *
	 * @param Inheritance $inheritance Resolves connectors by name.
	 */
	public function __construct( private readonly Inheritance $inheritance ) {}

	/**
	 * Returns the connector with this name.
	 *
	 * @param string               $name    Name of the connector.
	 * @param array<string, mixed> $request Request data passed to resolvers, without secret values.
	 * @param array<string, mixed> $input   Ability input.
	 * @throws Failure `wp_codebox_browser_connector_unresolved`.
	 */
	public function resolve( string $name, array $request, array $input ): Connector {
		try {
			$connector = $this->inheritance->resolve( [ $name ], [ 'connectors' => [ $name ] ] + $request, $input )[ $name ] ?? null;
		} catch ( Throwable $thrown ) {
			throw PluginResponse::thrown( $thrown, ErrorCode::BrowserConnectorUnresolved, __( 'The connector could not be resolved: a plugin of this site failed; the PHP error log says where.', 'codebox' ) );
		}
		if ( null === $connector || CredentialStatus::Missing === $connector->status && [] === $connector->credentials ) {
			throw Failure::because(
				ErrorCode::BrowserConnectorUnresolved,
				__( 'This site has no connector of this name with a credential.', 'codebox' ),
				[ __( 'Set the credential in Settings, Connectors, or add the connector with the filter wp_codebox_connector_credential_resolvers.', 'codebox' ) ]
			);
		}
		return $connector;
	}

	/**
	 * Returns the request with the connector's provider and model. A credential belongs to one provider, so a
	 * request for another provider is refused.
	 *
	 * @param Connector             $connector WordPress connector.
	 * @param array<string, string> $asked     Request with `provider` and `model`, '' when not given.
	 * @return array<string, string>
	 * @throws Failure `wp_codebox_browser_connector_provider_mismatch`, `wp_codebox_browser_connector_model_mismatch`.
	 */
	public function bound( Connector $connector, array $asked ): array {
		if ( '' !== $asked['provider'] && $asked['provider'] !== $connector->provider ) {
			throw Failure::because( ErrorCode::BrowserConnectorProviderMismatch, __( 'The connector belongs to another provider than the request names; leave "provider" out or name the provider of the connector.', 'codebox' ) );
		}
		if ( '' !== $asked['model'] && '' !== $connector->model && $asked['model'] !== $connector->model ) {
			throw Failure::because( ErrorCode::BrowserConnectorModelMismatch, __( 'The connector is bound to another model than the request names; leave "model" out or name the model of the connector.', 'codebox' ) );
		}
		$asked['provider'] = $connector->provider;
		$asked['model']    = '' === $connector->model ? $asked['model'] : $connector->model;
		return $asked;
	}

	/**
	 * Fails unless the credentials of the connector may be used.
	 *
	 * @param Connector $connector WordPress connector.
	 * @throws Failure `wp_codebox_browser_connector_credentials_unavailable`.
	 */
	public function usable( Connector $connector ): void {
		if ( ! $connector->status->usable() ) {
			/* translators: %s: status, as `denied`. */
			throw Failure::because( ErrorCode::BrowserConnectorCredentialsUnavailable, Sentence::of( __( 'The credentials of the connector are %s on this site.', 'codebox' ), $connector->status->value ), '' === $connector->reason ? [] : [ $connector->reason ] );
		}
		$short = Redaction::unprotected( $connector->values() );
		if ( [] !== $short ) {
			/* translators: %s: names of environment variables. */
			throw Failure::because( ErrorCode::BrowserConnectorCredentialsUnavailable, Sentence::of( __( 'The value of %s is too short or too common to be redacted from a response, so it is not used.', 'codebox' ), implode( ', ', $short ) ), [ __( 'Use a credential of at least 8 characters that are not all digits.', 'codebox' ) ] );
		}
	}

	/**
	 * Returns names and statuses of the connector's credentials.
	 *
	 * @param Connector|null $connector WordPress connector.
	 * @return list<array{name: string, status: string}>
	 */
	public static function credentials( ?Connector $connector ): array {
		return array_map(
			static fn( Credential $credential ): array => [
				'name'   => $credential->name,
				'status' => $credential->status->value,
			],
			null === $connector ? [] : array_values( $connector->credentials )
		);
	}

	/**
	 * Returns the connector's credential status and credential names, for a log.
	 *
	 * @param Connector|null $connector WordPress connector.
	 * @return array{credential_status: string, credential_names: list<string>}
	 */
	public static function summary( ?Connector $connector ): array {
		return [
			'credential_status' => null === $connector ? CredentialStatus::Missing->value : $connector->status->value,
			'credential_names'  => array_column( self::credentials( $connector ), 'name' ),
		];
	}
}
