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
 * The request that began the change did not record its end, or recorded a failure before the extension finished or
 * reversed the change. The extension's list of applied changes tells which files are changed now.
 */
final class InterruptedChange {

	/**
	 * Creates the recorder with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Writes the audit record of the end, unless the log already has it. Returns the fields `status` and `result` of the
	 * record; null when the log had it.
	 *
	 * @param array<string, mixed> $mark Mark of the change: `began`, its time; `about`, audit fields `event`, `artifact_id`,
	 *                                   `run_id`, and for a roll back `change`; `by`, kind of the requester when the
	 *                                   recovery link made the change.
	 * @return array<string, mixed>|null
	 */
	public function record( array $mark ): ?array {
		[ 'about' => $about, 'began' => $began ] = $mark;
		$records = Artifacts::auditOf( $this->site->id(), [ $about['run_id'] ] )['records'];
		$changes = array_filter( Changes::list( $this->site->id() ), static fn( array $change ): bool => ( $change['bundle']['run_id'] ?? '' ) === $about['run_id'] );
		$start   = self::start_without_end( $records, 'rollback' === $about['event'] ? [ 'rollback' ] : [ 'apply-approved', 'apply' ], $began );
		$end     = 'rollback' === $about['event'] ? self::end_of_roll_back( $about['change'], $records, $changes, $start ) : self::end_of_apply( $records, $changes, $start, $began );
		if ( null !== $end ) {
			AuditTrail::append(
				$this->site->id(),
				[
					'schema'    => 'wp-codebox/apply-audit/v1',
					'requester' => [ 'kind' => $mark['by'] ?? 'recovery' ],
					'adapter'   => DirectApply::ADAPTER,
				] + $about + $end
			);
		}
		return $end;
	}

	/**
	 * Returns the audit fields for the end of an apply; null when the log has them.
	 *
	 * @param list<array<string, mixed>>  $records Audit records of the run, oldest first.
	 * @param array<array<string, mixed>> $changes Applied changes of the run, newest first.
	 * @param array<string, mixed>|null   $start   Record of a start without an end.
	 * @param int                         $began   Time at which the change began.
	 * @return array<string, mixed>|null
	 */
	private static function end_of_apply( array $records, array $changes, ?array $start, int $began ): ?array {
		$recorded = array_column( array_column( $records, 'result' ), 'audit_reference' );
		foreach ( $changes as $change ) {
			if ( strtotime( $change['created_at'] ) < $began || in_array( $change['id'], $recorded, true ) ) {
				continue;
			}
			$left = array_diff( $change['files'], $change['undone'] );
			if ( [] !== $change['undone'] && [] !== $left ) {
				/* translators: %s: files. */
				return self::end( 'failure', [ 'status' => 'failed' ], Sentence::of( __( 'The change was interrupted and taken back, except these files, which were changed again since: %s', 'codebox' ), implode( ', ', $left ) ) );
			}
			if ( [] === $change['undone'] ) {
				return self::end(
					'success',
					[
						'status'          => 'applied',
						'audit_reference' => $change['id'],
						'applied_files'   => $start['approved_files'] ?? [],
					],
					__( 'The request ended before the result of the change was recorded; every file was written.', 'codebox' )
				);
			}
		}
		return null === $start ? null : self::end( 'failure', [ 'status' => 'failed' ], __( 'The change was interrupted; every file is as before the change.', 'codebox' ) );
	}

	/**
	 * Returns the audit fields for the end of a roll back; null when the log has them.
	 *
	 * @param string                      $id      Id of the change.
	 * @param list<array<string, mixed>>  $records Audit records of the run, oldest first.
	 * @param array<array<string, mixed>> $changes Applied changes of the run, newest first.
	 * @param array<string, mixed>|null   $start   Record of a start without an end.
	 * @return array<string, mixed>|null
	 */
	private static function end_of_roll_back( string $id, array $records, array $changes, ?array $start ): ?array {
		$change   = array_column( $changes, null, 'id' )[ $id ] ?? [
			'files'  => [],
			'undone' => [],
		];
		$recorded = [];
		foreach ( $records as $record ) {
			if ( 'rollback' === $record['event'] && ( $record['change'] ?? '' ) === $id ) {
				array_push( $recorded, ...( $record['result']['files'] ?? [] ) );
			}
		}
		$restored = array_values( array_diff( $change['undone'], $recorded ) );
		if ( [] === $restored ) {
			return null === $start ? null : self::end( 'failure', [], __( 'The rollback was interrupted before it restored a file; every file still has the contents that the change wrote.', 'codebox' ) );
		}
		$all = count( $change['undone'] ) === count( $change['files'] );
		return self::end(
			$all ? 'success' : 'failure',
			[
				'status' => $all ? 'restored' : 'restored-in-part',
				'files'  => $restored,
			],
			$all ? __( 'The request ended before the result of the rollback was recorded; all files are restored.', 'codebox' )
				: __( 'The rollback was interrupted; only the listed files are restored.', 'codebox' )
		);
	}

	/**
	 * Returns the record of the newest start that has no end; null without one. An end belongs to the last start
	 * before it.
	 *
	 * @param list<array<string, mixed>> $records Audit records of the run, oldest first.
	 * @param list<string>               $events  Events of the operation.
	 * @param int                        $began   Time at which the change began; later starts belong to other requests.
	 * @return array<string, mixed>|null
	 */
	private static function start_without_end( array $records, array $events, int $began ): ?array {
		$starts = [];
		foreach ( $records as $record ) {
			if ( in_array( $record['event'], $events, true ) ) {
				'started' === $record['status'] ? array_push( $starts, $record ) : array_pop( $starts );
			}
		}
		$starts = array_filter( $starts, static fn( array $start ): bool => strtotime( $start['timestamp'] ) <= $began );
		return array_pop( $starts );
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
