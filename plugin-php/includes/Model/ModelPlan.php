<?php
/**
 * The model of one task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * What the extension is told of it, the secret that opens it, and what may be recorded.
 */
final class ModelPlan {

	/**
	 * Describes one.
	 *
	 * @param Provider        $provider   Model provider.
	 * @param string          $model      Name of the model.
	 * @param string          $base_url   Where it is.
	 * @param Credential|null $credential The secret that opens it; null: it needs none.
	 * @param bool            $private    Whether the operator lets it lie on this host or in its network.
	 */
	public function __construct(
		public readonly Provider $provider,
		public readonly string $model,
		public readonly string $base_url,
		public readonly ?Credential $credential,
		public readonly bool $private
	) {}

	/**
	 * The model as the extension takes it.
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
	 * What a bundle and an answer may say: no address, no value.
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
