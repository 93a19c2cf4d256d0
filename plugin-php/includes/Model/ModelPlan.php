<?php
/**
 * Model of one task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Holds provider, model and credential of a task, and converts them for the run request and for storage.
 */
final class ModelPlan {

	/**
	 * Creates the plan.
	 *
	 * @param Provider        $provider   Model provider.
	 * @param string          $model      Model id.
	 * @param string          $base_url   Base URL of the model API.
	 * @param Credential|null $credential Credential for the model; null when none is needed.
	 * @param bool            $private    Whether the operator allows a base URL on this host or in its
	 *   network.
	 */
	public function __construct(
		public readonly Provider $provider,
		public readonly string $model,
		public readonly string $base_url,
		public readonly ?Credential $credential,
		public readonly bool $private
	) {}

	/**
	 * Returns the model in the form that the extension takes.
	 *
	 * @return array<string, mixed>
	 */
	public function endpoint(): array {
		return array_filter(
			[
				'provider'          => $this->provider->id,
				'model'             => $this->model,
				'api'               => $this->provider->api,
				'base_url'          => $this->base_url,
				'secret'            => $this->credential?->name,
				'context_tokens'    => $this->provider->context_tokens,
				'max_output_tokens' => $this->provider->max_output_tokens,
				'prices'            => $this->provider->prices,
				'private'           => $this->private,
			],
			static fn( mixed $value ): bool => ! in_array( $value, [ null, 0, [], false ], true )
		);
	}

	/**
	 * Returns the data for bundles and responses, without URL and secret value.
	 *
	 * @return array<string, mixed>
	 */
	public function record(): array {
		return [
			'provider'   => $this->provider->id,
			'model'      => $this->model,
			'credential' => null === $this->credential ? [ 'status' => CredentialStatus::NotRequired->value ] : [
				'name'   => $this->credential->name,
				'status' => $this->credential->status->value,
				'source' => $this->credential->source,
			],
		];
	}
}
