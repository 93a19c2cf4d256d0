<?php
/**
 * A connector of this site as a run or a request inherits it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Name, provider, model and credentials. `row()` may go to a caller, into a log or a bundle;
 * `values()` may not.
 */
final class Connector {

	/**
	 * Describes one.
	 *
	 * @param string           $name        Id of the connector.
	 * @param CredentialStatus $status      Whether its credentials can be used.
	 * @param string           $reason      Why not; one short sentence.
	 * @param string           $provider    Id of its model provider, or ''.
	 * @param string           $model       Its model, or ''.
	 * @param list<Credential> $credentials Its secrets.
	 * @param list<string>     $hosts       Hosts its secrets may go to from a sandbox; none unless a resolver names them.
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
	 * Values by environment name; empty unless the status is available.
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
	 * What may be shown: the connector row of the contract.
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
