<?php
/**
 * Phases of a task in a browser.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Capabilities;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostDelegation;

defined( 'ABSPATH' ) || exit;

/** Phases run in the page, one after the other. Only those of the kind host-delegation can be done on this site. */
final class TaskPhases {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param HostDelegation $delegations  Passes tasks to a plugin of this site.
	 * @param Capabilities   $capabilities Permission checks of the user.
	 */
	public function __construct(
		private readonly HostDelegation $delegations,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Returns the phases of a task: its own, then those of `materializers`; without any, one agent phase.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return list<array<string, mixed>>
	 * @throws Failure `wp_codebox_input_invalid` for a phase without a name, or two with one name.
	 */
	public function of( array $input ): array {
		$rows = (array) ( $input['phases'] ?? [] );
		foreach ( (array) ( $input['materializers'] ?? [] ) as $number => $row ) {
			$rows[] = [ 'kind' => 'materializer' ] + (array) $row + [ 'name' => 'materializer-' . ( $number + 1 ) ];
		}
		$rows   = [] === $rows ? [ [ 'name' => 'agent', 'kind' => 'agent' ] ] : $rows;
		$phases = [];
		foreach ( array_values( $rows ) as $number => $row ) {
			$name = trim( (string) ( $row['name'] ?? '' ) );
			if ( '' === $name || isset( $phases[ $name ] ) ) {
				throw Failure::invalid_input( __( 'Each phase needs a name of its own.', 'codebox' ), [], [ 'field' => "phases[$number].name" ] );
			}
			$phases[ $name ] = [
				'schema' => 'wp-codebox/browser-task-phase/v1',
				'name'   => $name,
				'kind'   => (string) ( $row['kind'] ?? 'agent' ),
				'label'  => (string) ( $row['label'] ?? $name ),
				'status' => (string) ( $row['status'] ?? 'pending' ),
				'order'  => $number,
			] + array_filter( array_intersect_key( $row, array_flip( [ 'metadata', 'request', 'input' ] ) ) );
		}
		return array_values( $phases );
	}

	/**
	 * Does the phases that this site can do, when the input asks for it.
	 *
	 * @param list<array<string, mixed>> $phases Phases.
	 * @param array<string, mixed>       $input  Ability input.
	 * @param SessionRecord              $record Session.
	 * @return list<array<string, mixed>>
	 * @throws Failure When the caller may not delegate.
	 */
	public function executed( array $phases, array $input, SessionRecord $record ): array {
		$asked = ! empty( $input['execute_phases'] ) && in_array( 'host-delegation', array_column( $phases, 'kind' ), true );
		// The scope browser-session:create grants sessions only.
		if ( $asked && get_current_user_id() > 0 && ! $this->capabilities->allows( Capabilities::RUN ) ) {
			throw Failure::invalid_input( __( '"execute_phases" needs the right to run tasks on this site.', 'codebox' ), [ __( 'Leave "execute_phases" out; the phases then run in the page of the browser.', 'codebox' ) ], [ 'field' => 'execute_phases' ] );
		}
		foreach ( $asked ? $phases : [] as $number => $phase ) {
			if ( 'host-delegation' === $phase['kind'] ) {
				$request = (array) ( $phase['request'] ?? [] ) + [
					'goal'               => $input['goal'] ?? '',
					'sandbox_session_id' => $record->session_id,
				];
				$result  = $this->delegations->request( $request );

				$phases[ $number ]['status'] = $result['status'];
				$phases[ $number ]['result'] = $result;
			}
		}
		return $phases;
	}
}
