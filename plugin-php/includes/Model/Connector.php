<?php
/**
 * Connector of this site whose credentials a run or a request inherits.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Holds name, provider, model and credentials. The result of `row()` may go to a caller, a log or a bundle;
 * `values()` must not.
 */
final class Connector {

	/**
	 * Creates a connector.
	 *
	 * @param string           $name        Id of the connector.
	 * @param CredentialStatus $status      Whether its credentials can be used.
	 * @param string           $reason      Reason why the credentials are unusable, one short sentence.
	 * @param string           $provider    Id of its model provider, or ''.
	 * @param string           $model       Model id, or ''.
	 * @param list<Credential> $credentials Credentials of the connector.
	 * @param list<string>     $hosts       Hosts that the secrets may be sent to from a sandbox; empty unless
	 *   a host plugin names them.
	 */
	public function __construct(
		public readonly string $name,
		public readonly CredentialStatus $status,
		public readonly string $reason = '',
		public readonly string $provider = '',
		public readonly string $model = '',
		public readonly array $credentials = [],
		public readonly array $hosts = []
	) {}

	/**
	 * Returns secret values by environment name; empty unless the status is available.
	 *
	 * @return array<string, string>
	 */
	public function values(): array {
		$values = [];
		foreach ( CredentialStatus::Available === $this->status ? $this->credentials : [] as $credential ) {
			$value = $credential->value();
			if ( null !== $value ) {
				$values[ $credential->name ] = $value;
			}
		}
		return $values;
	}

	/**
	 * Returns the connector for responses, logs and bundles: names and statuses without secret values.
	 *
	 * @return array<string, mixed>
	 */
	public function row(): array {
		return [
			'name'        => $this->name,
			'status'      => $this->status->usable() ? 'resolved' : 'unresolved',
			'provider'    => $this->provider,
			'model'       => $this->model,
			'secretEnv'   => array_map( static fn( Credential $credential ): string => $credential->name, $this->credentials ),
			'credentials' => [
				'schema'    => 'wp-codebox/connector-credentials/v1',
				'connector' => $this->name,
				'scope'     => 'connector',
				'status'    => $this->status->value,
				'secrets'   => array_map( static fn( Credential $credential ): array => $credential->row(), $this->credentials ),
				'reason'    => $this->reason,
			],
		];
	}
}
