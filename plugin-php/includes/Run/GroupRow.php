<?php
/**
 * One of several runs, as a row.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Rows of a batch and of a fan-out, and what they add up to. Every row has exactly one of
 * five statuses, and only a run whose outcome is good is `completed`.
 */
final class GroupRow {

	public const STATUSES = [ 'completed', 'failed', 'skipped', 'cancelled', 'timed_out' ];

	private const KEPT = [ 'outcome', 'summary', 'session', 'changed_files', 'approvable', 'completion_outcome', 'agent_result', 'evidence_refs', 'cost', 'run', 'error' ];

	/**
	 * Of a run that came to an outcome.
	 *
	 * @param array<string, mixed> $envelope `wp-codebox/agent-task-run/v1`.
	 * @return array<string, mixed>
	 */
	public static function ended( array $envelope ): array {
		$row = [
			'success'   => true === $envelope['success'],
			'status'    => match ( true ) {
				true === $envelope['success'] => 'completed',
				'timed_out' === $envelope['outcome'] => 'timed_out',
				'cancelled' === $envelope['outcome'] => 'cancelled',
				default => 'failed',
			},
			'exit_code' => (int) $envelope['exit_code'],
			'run_id'    => (string) $envelope['run']['run_id'],
		] + array_intersect_key( $envelope, array_flip( self::KEPT ) );
		if ( ! empty( $envelope['artifact_id'] ) ) {
			$row['artifact_id'] = (string) $envelope['artifact_id'];
			$row['artifacts']   = [ 'path' => (string) $envelope['artifacts'] ];
		}
		return $row;
	}

	/**
	 * Of one that never came to an outcome.
	 *
	 * @param Failure $failure Why.
	 * @return array<string, mixed>
	 */
	public static function failed( Failure $failure ): array {
		return [
			'success'   => false,
			'status'    => match ( $failure->error_code ) {
				ErrorCode::RunCancelled->value => 'cancelled',
				'wp_codebox_run_timeout' => 'timed_out',
				default => 'failed',
			},
			'exit_code' => $failure->exit_status,
			'error'     => $failure->to_array(),
		];
	}

	/**
	 * Of one that never started.
	 *
	 * @param string $code    Why, as a code.
	 * @param string $message Why, as a sentence.
	 * @return array<string, mixed>
	 */
	public static function skipped( string $code, string $message ): array {
		return [
			'success'   => false,
			'status'    => 'skipped',
			'exit_code' => 1,
			'error'     => [
				'code'    => $code,
				'message' => $message,
			],
		];
	}

	/**
	 * Of one that was cancelled before it started.
	 *
	 * @return array<string, mixed>
	 */
	public static function cancelled(): array {
		return self::failed( Failure::because( ErrorCode::RunCancelled, 'It was cancelled before it started.' ) );
	}

	/**
	 * How many there are, in all and of each status. The parts add up to the whole.
	 *
	 * @param array<array<string, mixed>> $rows Rows.
	 * @return array<string, int>
	 */
	public static function totals( array $rows ): array {
		$counted = array_count_values( array_column( $rows, 'status' ) );
		$totals  = [ 'total' => count( $rows ) ];
		foreach ( self::STATUSES as $status ) {
			$totals[ $status ] = $counted[ $status ] ?? 0;
		}
		return $totals;
	}

	/**
	 * Exit status of a command: 0 good, 130 cancelled, 3 some of it, 1 nothing of it.
	 *
	 * @param bool               $success Whether all of it is good.
	 * @param array<string, int> $totals  Totals.
	 */
	public static function exit_code( bool $success, array $totals ): int {
		return match ( true ) {
			$success => 0,
			$totals['cancelled'] > 0 => 130,
			$totals['completed'] > 0 => 3,
			default => 1,
		};
	}

	/**
	 * The session of several runs. Nothing of it is stored.
	 *
	 * @param array<string, mixed> $input   Input with the ids of the caller.
	 * @param bool                 $success Whether it is good.
	 * @param string               $id      Its id.
	 * @return array<string, mixed> `wp-codebox/sandbox-session/v1`.
	 */
	public static function session( array $input, bool $success, string $id ): array {
		$session = [
			'schema'      => 'wp-codebox/sandbox-session/v1',
			'id'          => $id,
			'status'      => $success ? 'completed' : 'failed',
			'persistence' => 'external-orchestrator',
		];
		if ( ! empty( $input['session_id'] ) ) {
			$session['agent_session_id'] = (string) $input['session_id'];
		}
		if ( ! empty( $input['orchestrator'] ) ) {
			$session['orchestrator'] = $input['orchestrator'];
		}
		return $session;
	}

	/**
	 * The caller's id of the call, or a new one.
	 *
	 * @param array<string, mixed> $input Input with the ids of the caller.
	 * @param string               $kind  What a new one begins with.
	 */
	public static function session_id( array $input, string $kind ): string {
		foreach ( [ 'sandbox_session_id', 'session_id' ] as $field ) {
			if ( '' !== trim( (string) ( $input[ $field ] ?? '' ) ) ) {
				return trim( (string) $input[ $field ] );
			}
		}
		return $kind . '-' . bin2hex( random_bytes( 8 ) );
	}
}
