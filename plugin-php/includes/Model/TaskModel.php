<?php
/**
 * Finds the model of a task and the secrets that it may use.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Finds the connectors whose credentials the task inherits, the model and its API key, and refuses the task before it
 * starts when one is missing or denied.
 */
final class TaskModel {

	/**
	 * Creates the resolver with its dependencies.
	 *
	 * @param Inheritance $inheritance Resolves connectors of this site.
	 * @param ModelChoice $models      Chooses the model of a task.
	 */
	public function __construct(
		private readonly Inheritance $inheritance,
		private readonly ModelChoice $models
	) {}

	/**
	 * Returns the model, the secrets and their storable description, for the run request.
	 *
	 * @param array<string, mixed> $input     Task input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param string               $agent     Kind of the agent: `model`, `preset`, `ability` or `command`.
	 * @param list<array{env: string, value: string, hosts: list<string>}> $secrets Secrets that the task
	 *   names.
	 * @throws Failure When a model, connector or key is missing or denied.
	 */
	public function resolve( array $input, Authority $authority, string $agent, #[\SensitiveParameter] array $secrets ): TaskGrant {
		$inherited = $this->inherited( $input, $agent );
		$plan      = $this->models->plan( $input, $authority, $agent, $inherited, $secrets );
		foreach ( $inherited as $connector ) {
			foreach ( [] === $connector->hosts ? [] : $connector->values() as $name => $value ) {
				$secrets[] = [
					'env'   => $name,
					'value' => $value,
					'hosts' => $connector->hosts,
				];
			}
		}
		$value = $plan?->credential?->value();
		if ( null !== $value && ! in_array( [ $plan->credential->name, $value ], array_map( static fn( array $row ): array => [ $row['env'], $row['value'] ], $secrets ), true ) ) {
			// A secret without hosts is sent to the model's URL only.
			$secrets[] = [
				'env'   => $plan->credential->name,
				'value' => $value,
				'hosts' => [],
			];
		}
		$record = array_filter(
			[
				'model'      => $plan?->record(),
				'connectors' => array_map(
					static fn( Connector $connector ): array => [
						'name'    => $connector->name,
						'status'  => $connector->status->value,
						'secrets' => array_map( static fn( Credential $credential ): array => $credential->row(), $connector->credentials ),
					],
					array_values( $inherited )
				),
			],
			static fn( mixed $value ): bool => null !== $value && [] !== $value
		);
		return new TaskGrant( $plan?->endpoint() ?? [], $secrets, $record );
	}

	/**
	 * Returns the connectors that the task names in `inherit`; fails when one of them is not usable.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @param string               $agent Kind of the agent: `model`, `preset`, `ability` or `command`.
	 * @return array<string, Connector>
	 */
	private function inherited( array $input, string $agent ): array {
		$inherit = (array) ( $input['inherit'] ?? [] );
		if ( [] === $inherit ) {
			return [];
		}
		$connectors = $this->inheritance->resolve( array_values( (array) ( $inherit['connectors'] ?? [] ) ), $inherit + [ 'agent' => $agent ], $input );
		foreach ( $connectors as $connector ) {
			if ( ! $connector->status->usable() ) {
				/* translators: 1: id of a connector, 2: status, as `denied`. */
				$sentence = Sentence::of( __( 'The credentials of the connector %1$s are %2$s on this site.', 'codebox' ), $connector->name, $connector->status->value );
				throw Failure::because(
					ErrorCode::ConnectorCredentialsUnavailable,
					'' === $connector->reason ? $sentence : Sentence::join( ' ', [ $sentence, $connector->reason ] ),
					[
						/* translators: %s: id of a connector. */
						Sentence::of( __( 'Set its key in Settings, Connectors, %s, or as the environment variable or constant that the connector names.', 'codebox' ), $connector->name ),
						__( 'Or let a plugin of this site supply the credentials with the filter wp_codebox_connector_credential_resolvers.', 'codebox' ),
						__( 'Or leave the connector out of "inherit.connectors", and give this task a key with "secret_env".', 'codebox' ),
					],
					[ 'connector' => $connector->row() ]
				);
			}
		}
		return $connectors;
	}
}
