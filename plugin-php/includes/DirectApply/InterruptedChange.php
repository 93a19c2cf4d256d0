<?php
/**
 * Records how an interrupted change ended.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use WPCodebox\AuditTrail;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Changes;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The request that began the change did not record its end, or recorded a failure before the engine settled the
 * change. The engine's list of changes tells which files are changed now.
 */
final class InterruptedChange {

	/**
	 * Creates the recorder with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Writes the audit record of the end, unless the log already says it.
	 *
	 * @param array<string, string> $about Audit fields of the change: `event`, `artifact_id`, `run_id`, and for a roll
	 *                                     back `change`.
	 * @param int                   $began Time at which the change began.
	 */
	public function record( array $about, int $began ): void {
		$records = Artifacts::auditOf( $this->site->id(), [ $about['run_id'] ] )['records'];
		$changes = array_filter( Changes::list( $this->site->id() ), static fn( array $change ): bool => ( $change['bundle']['run_id'] ?? '' ) === $about['run_id'] );
		$end     = 'rollback' === $about['event'] ? self::end_of_roll_back( $about, $records, $changes ) : self::end_of_apply( $records, $changes, $began );
		if ( null !== $end ) {
			AuditTrail::append(
				$this->site->id(),
				[
					'schema'    => 'wp-codebox/apply-audit/v1',
					'requester' => [ 'kind' => 'recovery' ],
					'adapter'   => DirectApply::ADAPTER,
				] + $about + $end
			);
		}
	}

	/**
	 * Returns the audit fields for the end of an apply; null when the log has them.
	 *
	 * @param list<array<string, mixed>>  $records Audit records of the run, oldest first.
	 * @param array<array<string, mixed>> $changes Applied changes of the run, newest first.
	 * @param int                         $began   Time at which the change began.
	 * @return array<string, mixed>|null
	 */
	private static function end_of_apply( array $records, array $changes, int $began ): ?array {
		$start = self::last( $records, 'apply-approved' );
		$end   = self::last( $records, 'apply' );
		$ended = ( $end['seq'] ?? 0 ) > ( $start['seq'] ?? 0 );
		foreach ( $changes as $change ) {
			if ( strtotime( $change['created_at'] ) >= $began && count( $change['undone'] ) < count( $change['files'] ) ) {
				return $ended && 'success' === $end['status'] ? null : self::end(
					'success',
					[
						'status'          => 'applied',
						'audit_reference' => $change['id'],
						'applied_files'   => $start['approved_files'] ?? [],
					],
					__( 'The request ended before the change; every file was written.', 'codebox' )
				);
			}
		}
		return $ended ? null : self::end( 'failure', [ 'status' => 'failed' ], __( 'The change was interrupted; every file is as before.', 'codebox' ) );
	}

	/**
	 * Returns the audit fields for the end of a roll back; null when the log has them.
	 *
	 * @param array<string, string>       $about   Audit fields of the roll back.
	 * @param list<array<string, mixed>>  $records Audit records of the run, oldest first.
	 * @param array<array<string, mixed>> $changes Applied changes of the run, newest first.
	 * @return array<string, mixed>|null
	 */
	private static function end_of_roll_back( array $about, array $records, array $changes ): ?array {
		$last   = self::last( $records, 'rollback' );
		$change = array_column( $changes, null, 'id' )[ $about['change'] ] ?? [ 'files' => [], 'undone' => [] ];
		if ( [] === $change['undone'] ) {
			return 'started' === ( $last['status'] ?? '' ) ? self::end( 'failure', [], __( 'The roll back was interrupted; every file is as the change made it.', 'codebox' ) ) : null;
		}
		if ( isset( $last['result']['files'] ) ) {
			return null;
		}
		$all = count( $change['undone'] ) === count( $change['files'] );
		return self::end(
			$all ? 'success' : 'failure',
			[
				'status' => $all ? 'restored' : 'restored-in-part',
				'files'  => $change['undone'],
			],
			__( 'The request ended before the roll back; the files are restored.', 'codebox' )
		);
	}

	/**
	 * Returns the last record of an event; empty without one.
	 *
	 * @param list<array<string, mixed>> $records Audit records, oldest first.
	 * @param string                     $event   Event.
	 * @return array<string, mixed>
	 */
	private static function last( array $records, string $event ): array {
		$of_event = array_filter( $records, static fn( array $record ): bool => ( $record['event'] ?? '' ) === $event );
		return end( $of_event ) ?: [];
	}

	/**
	 * Returns the audit fields of an end.
	 *
	 * @param string               $status  Status of the record.
	 * @param array<string, mixed> $result  Result.
	 * @param string               $message One sentence; the audit log is in English.
	 * @return array<string, mixed>
	 */
	private static function end( string $status, array $result, string $message ): array {
		return [
			'status' => $status,
			'result' => $result + [ 'message' => Sentence::english( $message ) ],
		];
	}
}
