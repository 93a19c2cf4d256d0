<?php
/**
 * Overview of the usable model providers.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Reports names and statuses for screens and debug information, without calling hooks. The actual choice
 * happens when a task starts.
 */
final class ProviderOverview {

	/**
	 * Creates the overview with its dependencies.
	 *
	 * @param Settings   $settings   Settings of the host (plugin settings page and constants).
	 * @param Providers  $providers  Model providers.
	 * @param Connectors $connectors Connectors registered in WordPress.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Providers $providers,
		private readonly Connectors $connectors
	) {}

	/**
	 * Creates the overview of a site.
	 *
	 * @param Settings $settings Settings of the host (plugin settings page and constants).
	 */
	public static function of( Settings $settings ): self {
		return new self( $settings, new Providers( $settings ), new Connectors() );
	}

	/**
	 * Returns the providers that have a base URL, each with name, source and status of its API key.
	 *
	 * @return array<string, array{status: string, source: string, key: string}>
	 */
	public function rows(): array {
		$rows = [];
		foreach ( $this->providers->all() as $id => $provider ) {
			if ( '' !== $provider->base_url ) {
				$rows[ $id ] = $this->row( $provider );
			}
		}
		return $rows;
	}

	/** Returns the default provider and model, e.g. `openai some-model`; '' when tasks get no model. */
	public function configured(): string {
		$id    = $this->settings->default_provider();
		$model = $this->settings->default_model();
		$model = '' !== $model ? $model : ( $this->providers->all()[ $id ]->models[0] ?? '' );
		return '' === $model ? '' : trim( $id . ' ' . $model );
	}

	/**
	 * Returns name, source and status of a provider's API key.
	 *
	 * @param Provider $provider Model provider.
	 * @return array{status: string, source: string, key: string}
	 */
	private function row( Provider $provider ): array {
		$credential = null;
		$status     = CredentialStatus::NotRequired;
		if ( '' !== $provider->connector && $this->connectors->has( $provider->connector ) ) {
			$connector  = $this->connectors->get( $provider->connector );
			$status     = $connector->status;
			$credential = $connector->credentials[0] ?? null;
			if ( null !== $credential && ! KeyHosts::may_get_from( $connector->name, $credential->name, $provider->base_url ) ) {
				$status = CredentialStatus::Denied;
			}
		}
		if ( '' !== $provider->key_env && ( null === $credential || CredentialStatus::Missing === $status ) ) {
			$found      = KeyHosts::may_get( $provider->key_env, $provider->base_url )
				? Connectors::from_process( $provider->key_env, $provider->key_env, $provider->key_env )
				: new Credential( $provider->key_env, CredentialStatus::Denied, '' );
			$credential = CredentialStatus::Missing === $found->status ? $credential ?? $found : $found;
			$status     = $credential->status;
		}
		return [
			'status' => ( Connectors::ai_is_on() ? $status : CredentialStatus::Denied )->value,
			'source' => $credential->source ?? '',
			'key'    => $credential->name ?? '',
		];
	}
}
