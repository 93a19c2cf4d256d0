<?php
/**
 * Credential of a model provider.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Finds the API key of a provider before a run starts, or refuses the task. The site's hooks see names and
 * statuses and make the final decision.
 */
final class ProviderCredentials {

	/** Searches the sources of a provider's API key. */
	private readonly KeySearch $keys;

	/**
	 * Creates the finder with its dependencies.
	 *
	 * @param Connectors $connectors Connectors registered in WordPress.
	 */
	public function __construct( private readonly Connectors $connectors ) {
		$this->keys = new KeySearch( $connectors );
	}

	/**
	 * Returns the credential, or null when none is needed.
	 *
	 * @param Provider                 $provider   Model provider.
	 * @param array<string, mixed>     $selection  Chosen `provider`, `model`, `api` and `agent`.
	 * @param array<string, mixed>     $input      Task input.
	 * @param array<string, Connector> $inherited  Connectors whose credentials the task inherits.
	 * @param array<string, string>    $brought    Values of the secrets that the task names, by environment
	 *   name.
	 * @throws Failure `wp_codebox_provider_credentials_unavailable`.
	 */
	public function resolve( Provider $provider, array $selection, array $input, array $inherited, #[\SensitiveParameter] array $brought ): ?Credential {
		$rows         = [
			'connectors' => array_map( static fn( Connector $connector ): array => $connector->row(), array_values( $inherited ) ),
			'settings'   => [],
		];
		$requirements = $this->requirements( $provider, $selection, $input, $rows );
		$credential   = null;
		$status       = CredentialStatus::NotRequired;
		$reason       = '';
		foreach ( $requirements['requirements'] as $requirement ) {
			[ $found, $denied ] = $this->keys->find( $provider, $requirement['name'], $input, $inherited, $brought );
			if ( CredentialStatus::Available === $found->status ) {
				// The first secret that is found is the provider's API key. For the other requirements the loop only
				// checks that a value exists.
				$credential ??= $found;
				$status       = $found->status;
			} elseif ( $requirement['required'] || CredentialStatus::Denied === $found->status ) {
				[ $credential, $status, $reason ] = [ $found, $found->status, $denied ];
				break;
			}
		}
		if ( ! Connectors::ai_is_on() ) {
			[ $status, $reason ] = [ CredentialStatus::Denied, Connectors::off() ];
		} elseif ( CredentialStatus::Denied === $status && '' === $reason ) {
			$reason = __( 'This site does not allow the use of the credentials of this provider.', 'codebox' );
		}
		return $this->decided( $provider, $requirements, $selection, $input, $rows, $credential, $status, $reason );
	}

	/**
	 * Returns which credentials the provider needs, after the site's filter has changed the list.
	 *
	 * @param Provider             $provider    Model provider.
	 * @param array<string, mixed> $selection   Chosen provider, model, API and agent.
	 * @param array<string, mixed> $input       Task input.
	 * @param array<string, mixed> $inheritance Rows of the inherited connectors.
	 * @return array{requirements: list<array{name: string, required: bool, kind: string, scope: string, source: string, secretEnv: string}>}
	 */
	private function requirements( Provider $provider, array $selection, array $input, array $inheritance ): array {
		$name = $provider->key_env;
		if ( '' !== $provider->connector && $this->connectors->has( $provider->connector ) ) {
			$name = $this->connectors->get( $provider->connector )->credentials[0]->name ?? $name;
		}
		$needs = '' === $name ? [] : [
			[
				'name'      => $name,
				'required'  => $provider->key_required,
				'kind'      => 'api-key',
				'scope'     => 'provider',
				'source'    => '' === $provider->connector ? 'secret_env' : 'connector',
				'secretEnv' => $name,
			],
		];
		/**
		 * Filters which credentials a provider needs. A requirement has no value: {name, required, kind,
		 * scope, source, secretEnv}. An empty list means that no credential is needed.
		 *
		 * @param array<string, mixed> $requirements `wp-codebox/provider-credential-requirements/v1`.
		 * @param array<string, mixed> $selection    Chosen `provider`, `model`, `api` and `agent`.
		 * @param array<string, mixed> $input        Task input.
		 * @param array<string, mixed> $inheritance  Rows of the inherited `connectors` and `settings`.
		 */
		$answer = apply_filters(
			'wp_codebox_provider_credential_requirements',
			$this->document( 'requirements', $provider, $selection, $needs ),
			$selection,
			$input,
			$inheritance
		);
		if ( ! is_array( $answer ) || ! is_array( $answer['requirements'] ?? null ) ) {
			throw $this->refused( $provider, CredentialStatus::Denied, $name, __( 'The filter wp_codebox_provider_credential_requirements of this site did not return an array with the list "requirements".', 'codebox' ) );
		}
		$needs = [];
		foreach ( $answer['requirements'] as $row ) {
			$name = is_array( $row ) ? $row['secretEnv'] ?? $row['name'] ?? '' : '';
			if ( ! is_string( $name ) || 1 !== preg_match( '/^[A-Z_][A-Z0-9_]{0,127}$/D', $name ) ) {
				throw $this->refused( $provider, CredentialStatus::Denied, '', __( 'A plugin of this site requires a secret whose name is not a valid environment variable name.', 'codebox' ) );
			}
			$needs[] = [
				'name'      => $name,
				'required'  => false !== ( $row['required'] ?? true ),
				'kind'      => Label::clean( $row['kind'] ?? 'api-key' ),
				'scope'     => Label::clean( $row['scope'] ?? 'provider' ),
				'source'    => Label::clean( $row['source'] ?? '' ),
				'secretEnv' => $name,
			];
		}
		return $this->document( 'requirements', $provider, $selection, $needs );
	}

	/**
	 * Returns the credential after the site's final filter.
	 *
	 * @param Provider             $provider     Model provider.
	 * @param array<string, mixed> $requirements Requirements of the provider.
	 * @param array<string, mixed> $selection    Chosen provider, model, API and agent.
	 * @param array<string, mixed> $input        Task input.
	 * @param array<string, mixed> $inheritance  Rows of the inherited connectors.
	 * @param Credential|null      $credential   Credential that was found.
	 * @param CredentialStatus     $status       Status of the credential.
	 * @param string               $reason       Reason why it is unusable.
	 * @throws Failure `wp_codebox_provider_credentials_unavailable`.
	 */
	private function decided( Provider $provider, array $requirements, array $selection, array $input, array $inheritance, ?Credential $credential, CredentialStatus $status, string $reason ): ?Credential {
		$preflight = [
			'status'      => $status->value,
			'secrets'     => null === $credential ? [] : [ $credential->row() ],
			'diagnostics' => '' === $reason ? [] : [
				[
					'code'     => 'credentials-' . $status->value,
					'message'  => $reason,
					'severity' => 'error',
				],
			],
		] + $this->document( 'preflight', $provider, $selection, $requirements['requirements'] );
		/**
		 * Filters the credentials of a provider as the final step: any `status` but `available` and
		 * `not-required` refuses the task before it starts. The result may contain `secret_values` (value by
		 * environment name) for a required name; they are removed from it.
		 *
		 * @param array<string, mixed> $preflight    Document without secret values,
		 *   `wp-codebox/provider-credential-preflight/v1`.
		 * @param array<string, mixed> $requirements `wp-codebox/provider-credential-requirements/v1`.
		 * @param array<string, mixed> $selection    Chosen `provider`, `model`, `api` and `agent`.
		 * @param array<string, mixed> $input        Task input.
		 * @param array<string, mixed> $inheritance  Rows of the inherited `connectors` and `settings`.
		 */
		$answer = apply_filters( 'wp_codebox_resolve_provider_credentials', $preflight, $requirements, $selection, $input, $inheritance );
		$values = is_array( $answer ) && is_array( $answer['secret_values'] ?? null ) ? $answer['secret_values'] : [];
		foreach ( $requirements['requirements'] as $requirement ) {
			$value = $values[ $requirement['name'] ] ?? null;
			if ( is_string( $value ) && '' !== $value ) {
				$credential = new Credential( $requirement['name'], CredentialStatus::Available, 'hook', $value );
				// A value from the filter turns the status missing into available. The status denied stays,
				// unless the filter also changes it.
				$answer['status'] = CredentialStatus::Missing->value === ( $answer['status'] ?? '' ) ? CredentialStatus::Available->value : $answer['status'] ?? '';
				break;
			}
		}
		$status = is_array( $answer ) ? CredentialStatus::read( $answer['status'] ?? null ) : CredentialStatus::Denied;
		if ( CredentialStatus::Available === $status && null === $credential?->value() ) {
			// Without a value, the status `available` counts as missing; if no credential is required, as not required.
			$status = null === $credential ? CredentialStatus::NotRequired : CredentialStatus::Missing;
		}
		if ( ! $status->usable() ) {
			$said = is_array( $answer ) ? $answer['diagnostics'][0]['message'] ?? $answer['reason'] ?? null : null;
			throw $this->refused( $provider, $status, $credential?->name ?? '', Label::sentence( $said, array_values( array_filter( [ $credential?->value() ], 'is_string' ) ), $reason ) );
		}
		return CredentialStatus::Available === $status ? $credential : null;
	}

	/**
	 * Builds the document without secret values that a filter gets: the requirements, or the result of the search.
	 *
	 * @param string                     $kind      `requirements` or `preflight`.
	 * @param Provider                   $provider  Model provider.
	 * @param array<string, mixed>       $selection Chosen provider, model, API and agent.
	 * @param list<array<string, mixed>> $needs     Requirements of the provider.
	 * @return array<string, mixed>
	 */
	private function document( string $kind, Provider $provider, array $selection, array $needs ): array {
		return [
			'schema'       => 'wp-codebox/provider-credential-' . $kind . '/v1',
			'provider'     => $provider->id,
			'model'        => (string) ( $selection['model'] ?? '' ),
			'requirements' => $needs,
			'secret_env'   => array_column( $needs, 'secretEnv' ),
			'diagnostics'  => [],
			'redacted'     => true,
		];
	}

	/**
	 * Builds the failure for missing or denied credentials.
	 *
	 * @param Provider         $provider Model provider.
	 * @param CredentialStatus $status   Status missing or denied.
	 * @param string           $name     Name of the environment variable that holds the API key.
	 * @param string           $reason   Reason, or ''.
	 */
	private function refused( Provider $provider, CredentialStatus $status, string $name, string $reason ): Failure {
		$name     = '' === $name ? $provider->key_env : $name;
		$sentence = CredentialStatus::Denied === $status
			/* translators: %s: id of a model provider. */
			? Sentence::of( __( 'This site does not allow the use of the credentials of the model provider %s.', 'codebox' ), $provider->id )
			/* translators: 1: id of a model provider, 2: name of an environment variable. */
			: Sentence::of( __( 'The model provider %1$s needs the key %2$s, and this site has no value for it.', 'codebox' ), $provider->id, $name );
		$other    = __( 'Choose another provider with "provider" and "model", or an agent that needs no model with "agent".', 'codebox' );
		return Failure::because(
			ErrorCode::ProviderCredentialsUnavailable,
			'' === $reason ? $sentence : Sentence::join( ' ', [ $sentence, $reason ] ),
			CredentialStatus::Denied === $status ? [ $other ] : [
				/* translators: 1: id of a connector, or name of an environment variable where it stands alone, 2: name of an environment variable. */
				'' === $provider->connector ? Sentence::of( __( 'Set the key for this PHP as the environment variable or the constant %s.', 'codebox' ), $name ) : Sentence::of( __( 'Set the key in Settings, Connectors, %1$s, or as the environment variable or the constant %2$s.', 'codebox' ), $provider->connector, $name ),
				/* translators: %1$s: name of an environment variable. */
				Sentence::of( __( 'Or give this task a key: list %1$s in "secret_env" and let a plugin of this site supply its value with the filter wp_codebox_secret_values. In WP-CLI, --secret-env=%1$s reads it from the environment of the command.', 'codebox' ), $name ),
				$other,
			],
			[
				'schema'      => 'wp-codebox/provider-credential-resolution/v1',
				'provider'    => $provider->id,
				'resolution'  => $status->value,
				'secret_env'  => '' === $name ? [] : [ $name ],
				'diagnostics' => [
					[
						'code'     => 'credentials-' . $status->value,
						'message'  => '' === $reason ? $sentence : $reason,
						'severity' => 'error',
					],
				],
				'redacted'    => true,
			]
		);
	}
}
