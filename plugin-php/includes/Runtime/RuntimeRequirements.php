<?php
/**
 * What a task would need, and whether this site has it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Model\Inheritance;
use WPCodebox\Model\ProviderOverview;
use WPCodebox\Model\Providers;
use WPCodebox\Run\SecretChoice;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Looks up provider, model, components, secrets and connectors like a task does, and starts nothing. The answer names
 * secrets and connectors; it has no values and no host paths.
 */
final class RuntimeRequirements {

	private const TEXTS = [ 'runtime_provider', 'provider', 'model', 'agent', 'mode', 'secret_env', 'provider_plugin_paths', 'capabilities', 'dependencies', 'sandbox_session_id' ];

	/** Capabilities of the runtime of this plugin. */
	private const CAPABILITIES = [ 'agent-task:run', 'agent-task:batch', 'agent-task:fanout', 'runtime-package:run', 'runtime-requirements:resolve', 'wordpress-runtime:workload', 'wordpress-runtime:fuzz-suite', 'wordpress-runtime:sandbox-isolation-proof', 'contract-manifest:read' ];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate        Check that the PHP extension is loaded and its version fits.
	 * @param Settings      $settings    Settings of the host (plugin settings page and constants).
	 * @param Providers     $providers   Model providers.
	 * @param Inheritance   $inheritance Finds connectors.
	 * @param RequiredCode  $code        Looks up components and plugins.
	 * @param SecretChoice  $secrets     Finds secrets.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Settings $settings,
		private readonly Providers $providers,
		private readonly Inheritance $inheritance,
		private readonly RequiredCode $code,
		private readonly SecretChoice $secrets
	) {}

	/**
	 * Returns the readiness of this site for a task.
	 *
	 * @param array<string, mixed> $input     Ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/runtime-requirements-readiness/v1`.
	 */
	public function resolve( array $input, Authority $authority ): array {
		$this->gate->check();
		HostAnswer::bounded( $input, ErrorCode::InputInvalid );
		$input      = HostAnswer::trimmed( $input, self::TEXTS );
		$missing    = new MissingParts();
		$connectors = $this->connectors( $input, $missing );
		$provider   = $this->provider( $input, $connectors );
		$known      = $this->providers->all()[ $provider ] ?? null;
		$given      = (string) ( $input['model'] ?? '' );
		$model      = '' !== $given ? $given : ( '' !== $this->settings->default_model() && $provider === $this->settings->default_provider() ? $this->settings->default_model() : ( $known->models[0] ?? '' ) );
		$strategies = $this->strategies( $provider, $connectors, $missing );
		$components = $this->code->components( $input, $missing );
		$plugins    = $this->code->plugins( $input, $missing );
		$secrets    = $this->secret_names( $input, $authority, $missing );
		$this->others( $input, $missing );
		if ( '' !== $provider && '' === $model ) {
			$missing->add( 'model', $provider, __( 'no model is named and the provider has no default', 'codebox' ) );
		}
		$asked = '' !== $provider || '' !== $model;
		$ready = [] === $missing->rows;
		return [
			'success'                  => true,
			'schema'                   => 'wp-codebox/runtime-requirements-readiness/v1',
			'provider'                 => $provider,
			'model'                    => $model,
			'plugins'                  => $plugins,
			'components'               => $components,
			'secret_env'               => $secrets,
			'provider_auth_strategies' => $strategies,
			'availability'             => [
				'status'     => $ready ? 'ready' : 'blocked',
				'ready'      => $ready,
				'provider'   => ! $asked ? 'not-required' : $missing->status( 'provider' ),
				'model'      => ! $asked ? 'not-required' : $missing->status( 'model' ),
				'components' => [] === $components && [] === $plugins ? 'not-required' : $missing->status( 'component', 'plugin' ),
				'secret_env' => [] === $secrets ? 'not-required' : $missing->status( 'secret' ),
				'connectors' => [] === $connectors ? 'not-required' : $missing->status( 'connector' ),
			],
			'missing_adapters'         => array_values( array_filter( $missing->rows, static fn( array $row ): bool => 'connector' !== $row['type'] ) ),
			'pending_connectors'       => $this->pending( $connectors ),
			'installable_components'   => array_values( array_map( static fn( array $row ): array => [ 'slug' => $row['name'] ], array_filter( $missing->rows, static fn( array $row ): bool => in_array( $row['type'], [ 'component', 'plugin' ], true ) ) ) ),
		] + HostAnswer::filled(
			[ 'capabilities' => $this->capabilities( $input, $missing ) ] + array_intersect_key( $input, array_flip( [ 'agent', 'mode', 'runner_capabilities', 'sandbox_session_id', 'orchestrator', 'metadata' ] ) )
		);
	}

	/**
	 * Resolves the connectors that the task would inherit.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @param MissingParts         $missing Collects what is missing.
	 * @return array<string, \WPCodebox\Model\Connector>
	 */
	private function connectors( array $input, MissingParts $missing ): array {
		$names = array_values( array_filter( array_map( 'trim', (array) ( $input['inherit']['connectors'] ?? [] ) ) ) );
		if ( [] === $names ) {
			return [];
		}
		$connectors = $this->inheritance->resolve( $names, (array) $input['inherit'], $input );
		foreach ( $connectors as $name => $connector ) {
			if ( ! $connector->status->usable() ) {
				$missing->add( 'connector', (string) $name, $connector->reason, 'denied' === $connector->status->value );
			}
		}
		return $connectors;
	}

	/**
	 * Returns the provider that the task would use; '' for none.
	 *
	 * @param array<string, mixed>                      $input      Ability input.
	 * @param array<string, \WPCodebox\Model\Connector> $connectors Inherited connectors.
	 */
	private function provider( array $input, array $connectors ): string {
		$given = array_filter( [ $input['runtime_provider'] ?? '', $input['provider'] ?? '' ] );
		if ( count( array_unique( $given ) ) > 1 ) {
			throw Failure::invalid_input( __( '"runtime_provider" and "provider" name different model providers; give only one of these fields.', 'codebox' ), [], [ 'field' => 'provider' ] );
		}
		if ( [] !== $given ) {
			return (string) reset( $given );
		}
		foreach ( $connectors as $connector ) {
			if ( '' !== $connector->provider ) {
				return $connector->provider;
			}
		}
		return $this->settings->default_provider();
	}

	/**
	 * Returns how the provider authenticates.
	 *
	 * @param string                                    $provider   Provider; '' for none.
	 * @param array<string, \WPCodebox\Model\Connector> $connectors Inherited connectors.
	 * @param MissingParts                              $missing    Collects what is missing.
	 * @return list<array<string, string>>
	 */
	private function strategies( string $provider, array $connectors, MissingParts $missing ): array {
		if ( '' === $provider ) {
			return [];
		}
		$known = $this->providers->all()[ $provider ] ?? null;
		if ( null === $known ) {
			$missing->add( 'provider', $provider, __( 'this site has no such provider', 'codebox' ) );
			return [];
		}
		foreach ( $connectors as $name => $connector ) {
			if ( $connector->provider === $provider ) {
				return [
					[
						'provider'  => $provider,
						'strategy'  => 'connector',
						'status'    => $connector->status->value,
						'connector' => (string) $name,
					],
				];
			}
		}
		$row    = ProviderOverview::of( $this->settings )->rows()[ $provider ] ?? [
			'status' => 'not-required',
			'source' => '',
			'key'    => '',
		];
		$way    = '' !== $known->connector ? 'connector' : ( '' !== $known->key_env ? 'environment' : 'none' );
		$status = $row['status'];
		if ( in_array( $status, [ 'missing', 'denied' ], true ) ) {
			$missing->add( 'provider', $provider, 'denied' === $status ? __( 'its key may not be used', 'codebox' ) : __( 'its key is not set', 'codebox' ), 'denied' === $status );
		}
		return [
			HostAnswer::filled(
				[
					'provider'   => $provider,
					'strategy'   => $way,
					'status'     => $status,
					'connector'  => $known->connector,
					'secret_env' => $row['key'],
					'source'     => $row['source'],
				]
			),
		];
	}

	/**
	 * Returns the names of the secrets that the task needs.
	 *
	 * @param array<string, mixed> $input     Ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param MissingParts         $missing   Collects what is missing.
	 * @return list<string>
	 */
	private function secret_names( array $input, Authority $authority, MissingParts $missing ): array {
		$names = array_values( array_unique( (array) ( $input['secret_env'] ?? [] ) ) );
		foreach ( $names as $name ) {
			if ( 1 !== preg_match( '/^[A-Z_][A-Z0-9_]{0,127}$/D', $name ) ) {
				throw Failure::invalid_input( __( '"secret_env" must list only names of environment variables in capital letters, such as API_KEY.', 'codebox' ), [], [ 'field' => 'secret_env' ] );
			}
			try {
				$this->secrets->resolve( [ 'secret_env' => [ $name ] ], $authority );
			} catch ( Failure ) {
				$missing->add( 'secret', $name, __( 'no plugin of this site supplies this secret to this user', 'codebox' ) );
			}
		}
		return $names;
	}

	/**
	 * Notes requirements that this site does not know.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @param MissingParts         $missing Collects what is missing.
	 */
	private function others( array $input, MissingParts $missing ): void {
		foreach ( array_keys( (array) ( $input['requirements'] ?? [] ) ) as $name ) {
			$missing->add( 'requirement', sanitize_text_field( (string) $name ), __( 'this site knows no requirement of this name', 'codebox' ) );
		}
		foreach ( (array) ( $input['capabilities'] ?? [] ) as $name ) {
			if ( ! in_array( $name, self::CAPABILITIES, true ) ) {
				$missing->add( 'capability', sanitize_text_field( $name ), __( 'the runtime of this site does not have this capability', 'codebox' ) );
			}
		}
	}

	/**
	 * Returns the capabilities that were asked for.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @param MissingParts         $missing What is missing.
	 * @return list<array<string, string>>
	 */
	private function capabilities( array $input, MissingParts $missing ): array {
		return array_map(
			static fn( string $name ): array => [
				'name'   => $name,
				'status' => in_array( $name, self::CAPABILITIES, true ) ? 'available' : 'missing',
			],
			array_values( (array) ( $input['capabilities'] ?? [] ) )
		);
	}

	/**
	 * Returns the connectors that cannot be used.
	 *
	 * @param array<string, \WPCodebox\Model\Connector> $connectors Inherited connectors.
	 * @return list<array<string, string>>
	 */
	private function pending( array $connectors ): array {
		$rows = [];
		foreach ( $connectors as $name => $connector ) {
			if ( ! $connector->status->usable() ) {
				$rows[] = HostAnswer::filled(
					[
						'name'     => (string) $name,
						'status'   => $connector->status->value,
						'reason'   => $connector->reason,
						'provider' => $connector->provider,
					]
				);
			}
		}
		return $rows;
	}
}
