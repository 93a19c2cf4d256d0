<?php
/**
 * Chooses the model of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Order: the task's own fields, inherited connectors, the site's defaults, the only connector that has a key.
 * A key of this site is never sent to a URL that the task supplies.
 */
final class ModelChoice {

	/**
	 * Creates the choice with its dependencies.
	 *
	 * @param Settings            $settings    Settings of the host (plugin settings page and constants).
	 * @param Providers           $providers   Model providers.
	 * @param Connectors          $connectors  Connectors registered in WordPress.
	 * @param ProviderCredentials $credentials Finds keys of providers.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Providers $providers,
		private readonly Connectors $connectors,
		private readonly ProviderCredentials $credentials
	) {}

	/**
	 * Checks whether the task itself requests a model.
	 *
	 * @param array<string, mixed> $input Task input.
	 */
	public function asked( array $input ): bool {
		return isset( $input['provider'] ) || isset( $input['model'] ) || isset( $input['base_url'] );
	}

	/**
	 * Checks whether a model is requested or configured, so a task without an agent can use the built-in one.
	 *
	 * @param array<string, mixed> $input Task input.
	 */
	public function configured( array $input ): bool {
		if ( $this->asked( $input ) || ! empty( $input['inherit']['connectors'] ) ) {
			return true;
		}
		if ( '' !== $this->settings->default_model() ) {
			return true;
		}
		$own = $this->providers->all()[ $this->settings->default_provider() ] ?? null;
		return null !== $own && [] !== $own->models;
	}

	/**
	 * Returns the model and its credential; null when the task has none.
	 *
	 * @param array<string, mixed>     $input     Task input.
	 * @param Authority                $authority User or operator the call runs as.
	 * @param string                   $agent     Kind of the agent: `model`, `preset`, `ability` or `command`.
	 * @param array<string, Connector> $inherited Usable connectors that the task inherits.
	 * @param list<array{env: string, value: string, hosts: list<string>}> $brought Secrets that
	 *   the task names.
	 * @throws Failure When the model does not exist, is not permitted, or its key is missing.
	 */
	public function plan( array $input, Authority $authority, string $agent, array $inherited, #[\SensitiveParameter] array $brought ): ?ModelPlan {
		$asked = $this->asked( $input ) || [] !== array_filter( $inherited, static fn( Connector $connector ): bool => '' !== $connector->provider );
		if ( ! $asked && ( 'command' === $agent || 'model' !== $agent && ! $this->configured( $input ) ) ) {
			return null;
		}
		[ $provider, $base_url ] = $this->provider( $input, $authority, $inherited );
		$model                   = $this->model( $input, $provider, $inherited );
		$credential              = $this->credentials->resolve(
			$provider,
			[
				'provider' => $provider->id,
				'model'    => $model,
				'api'      => $provider->api,
				'agent'    => $agent,
			],
			$input,
			$inherited,
			$this->meant( $brought, $base_url )
		);
		$private = Authority::Operator === $authority && isset( $input['base_url'] );
		return new ModelPlan( $provider, $model, $base_url, $credential, $private || KeyHosts::may_be_private( $base_url ) );
	}

	/**
	 * Returns the provider with its base URL.
	 *
	 * @param array<string, mixed>     $input     Task input.
	 * @param Authority                $authority User or operator the call runs as.
	 * @param array<string, Connector> $inherited Connectors whose credentials the task inherits.
	 * @return array{Provider, string}
	 */
	private function provider( array $input, Authority $authority, array $inherited ): array {
		$asked = isset( $input['base_url'] ) ? rtrim( trim( (string) $input['base_url'] ), '/' ) : '';
		$id    = (string) ( $input['provider'] ?? '' );
		if ( '' === $id && '' !== $asked ) {
			foreach ( $this->providers->all() as $candidate ) {
				if ( $candidate->base_url === $asked ) {
					return [ $candidate, $asked ];
				}
			}
			$id = 'openai-compatible';
		}
		foreach ( '' === $id ? $inherited : [] as $connector ) {
			if ( '' !== $connector->provider ) {
				$id = $connector->provider;
				break;
			}
		}
		$id = '' !== $id ? $id : $this->settings->default_provider();
		$id = '' !== $id ? $id : $this->connected();
		if ( '' === $id ) {
			throw $this->missing( __( 'The task has no model provider, and none is configured.', 'codebox' ) );
		}
		$provider = $this->providers->get( $id );
		if ( '' === $asked || $asked === $provider->base_url ) {
			if ( '' === $provider->base_url ) {
				/* translators: %s: id of a model provider. */
				throw Failure::because( ErrorCode::ModelInvalid, Sentence::of( __( 'No address is configured for the model provider %s; name another provider, or, as the operator, give the address in "base_url" (in WP-CLI --base-url).', 'codebox' ), $id ) );
			}
			return [ $provider, $provider->base_url ];
		}
		if ( Authority::Operator !== $authority ) {
			throw Failure::because(
				ErrorCode::Forbidden,
				/* translators: %s: id of a model provider. */
				Sentence::of( __( '"base_url" must be the address that is configured for the model provider %s: a task never sends a key of this site, nor a request of this host, to another address.', 'codebox' ), $id ),
				[ __( 'Leave "base_url" out.', 'codebox' ), __( 'Or let an administrator add a provider with this address in the settings of Codebox.', 'codebox' ) ]
			);
		}
		if ( '' !== $provider->base_url ) {
			// The operator gave another URL: only a key given for this run may be sent there.
			$provider = new Provider( $provider->id, $provider->api, '', $provider->key_env, '', false, $provider->models, $provider->context_tokens, $provider->max_output_tokens, $provider->prices );
		}
		return [ $provider, $asked ];
	}

	/**
	 * Returns the model id of a provider.
	 *
	 * @param array<string, mixed>     $input     Task input.
	 * @param Provider                 $provider  Model provider.
	 * @param array<string, Connector> $inherited Connectors whose credentials the task inherits.
	 */
	private function model( array $input, Provider $provider, array $inherited ): string {
		$choices = [ $input['model'] ?? '' ];
		foreach ( $inherited as $connector ) {
			$choices[] = $connector->provider === $provider->id ? $connector->model : '';
		}
		$choices[] = in_array( $this->settings->default_provider(), [ '', $provider->id ], true ) ? $this->settings->default_model() : '';
		$choices[] = $provider->models[0] ?? '';
		$model     = trim( (string) ( array_values( array_filter( $choices, static fn( mixed $name ): bool => is_string( $name ) && '' !== trim( $name ) ) )[0] ?? '' ) );
		if ( '' === $model ) {
			/* translators: %s: id of a model provider. */
			throw $this->missing( Sentence::of( __( 'The model provider %s exists, but the task has no model, and none is configured for this provider.', 'codebox' ), $provider->id ) );
		}
		if ( [] !== $provider->models && ! in_array( $model, $provider->models, true ) ) {
			/* translators: 1: id of a model provider, 2: list of models. */
			throw Failure::because( ErrorCode::ModelInvalid, Sentence::of( __( 'This site does not offer this model of the provider %1$s; available: %2$s.', 'codebox' ), $provider->id, implode( ', ', $provider->models ) ) );
		}
		return $model;
	}

	/**
	 * Returns the task's secrets that may be sent to a URL: those without hosts, and those whose hosts
	 * include it.
	 *
	 * @param list<array{env: string, value: string, hosts: list<string>}> $brought  Secrets that
	 *   the task names.
	 * @param string                                                       $base_url Base URL of the model
	 *   API.
	 * @return array<string, string> Values by environment name.
	 */
	private function meant( #[\SensitiveParameter] array $brought, string $base_url ): array {
		return array_column( array_filter( $brought, static fn( array $row ): bool => [] === $row['hosts'] || KeyHosts::names( $row['hosts'], $base_url ) ), 'value', 'env' );
	}

	/** Returns the id of the only provider whose connector has a key; '' when none or several do. */
	private function connected(): string {
		$found = [];
		foreach ( $this->providers->all() as $provider ) {
			if ( '' !== $provider->connector && $this->connectors->has( $provider->connector ) && CredentialStatus::Available === $this->connectors->get( $provider->connector )->status ) {
				$found[] = $provider->id;
			}
		}
		return 1 === count( $found ) ? $found[0] : '';
	}

	/**
	 * Builds the failure for a task without a provider or a model.
	 *
	 * @param string $sentence Error message.
	 */
	private function missing( string $sentence ): Failure {
		return Failure::because(
			ErrorCode::ModelMissing,
			$sentence,
			[
				__( 'Name the provider and the model for this task: "provider" and "model" (in WP-CLI --provider=<id> --model=<name>).', 'codebox' ),
				__( 'Or set a default: the options wp_codebox_default_provider and wp_codebox_default_model, or the filters of the same names.', 'codebox' ),
				__( 'Or let a program do the work instead of a model: set "agent" or "agent_command".', 'codebox' ),
			]
		);
	}
}
