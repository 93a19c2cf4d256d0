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
 * The request that began the change could not write the record, or ended before, or recorded a failure before the
 * extension finished or reversed the change. Unless the mark has the end, the extension's list of applied changes tells
 * which files are changed now.
 */
final class InterruptedChange {

	/**
	 * Creates the recorder with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Returns the fields `status` and `result` of the record of the end; null when the log has it.
	 *
	 * @param array<string, mixed> $mark Mark of the change: `began`, its time; `about`, audit fields `event`, `artifact_id`,
	 *                                   `run_id`, and for a roll back `change`; `end`, fields `status` and `result` that
	 *                                   an earlier request could not write.
	 * @return array<string, mixed>|null
	 */
	public function outcome( array $mark ): ?array {
		[ 'about' => $about, 'began' => $began ] = $mark;
		$records = Artifacts::auditOf( $this->site->id(), [ $about['run_id'] ] )['records'];
		$start   = self::start_without_end( $records, 'rollback' === $about['event'] ? [ 'rollback' ] : [ 'apply-approved', 'apply' ], $began );
		if ( isset( $mark['end'] ) ) {
			// The log may have the record although the attempt to write it reported an error.
			return self::is_recorded( $about, $mark['end']['result'], $records, $start ) ? null : $mark['end'];
		}
		$changes = array_filter( Changes::list( $this->site->id() ), static fn( array $change ): bool => ( $change['bundle']['run_id'] ?? '' ) === $about['run_id'] );
		return 'rollback' === $about['event'] ? self::end_of_roll_back( $about['change'], $records, $changes, $start ) : self::end_of_apply( $records, $changes, $start, $began );
	}

	/**
	 * Writes the audit record of the end.
	 *
	 * @param array<string, mixed> $mark Mark of the change.
	 * @param array<string, mixed> $end  Fields `status` and `result`.
	 */
	public function record( array $mark, array $end ): void {
		AuditTrail::append( $this->site->id(), self::fields( $mark, $end ) );
	}

	/**
	 * Returns the fields of the record.
	 *
	 * @param array<string, mixed> $mark Mark of the change: `began`, `about`, and `requester` of a roll back.
	 * @param array<string, mixed> $end  Fields `status` and `result`.
	 * @return array<string, mixed>
	 */
	public static function fields( array $mark, array $end ): array {
		return [
			'schema'    => 'wp-codebox/apply-audit/v1',
			'requester' => $mark['requester'] ?? [ 'kind' => 'recovery' ],
			'adapter'   => DirectApply::ADAPTER,
			'began'     => self::began( $mark ),
		] + $mark['about'] + $end;
	}

	/**
	 * Returns the time at which a change began, in RFC 3339, UTC.
	 *
	 * @param array<string, mixed> $mark Mark of the change.
	 */
	public static function began( array $mark ): string {
		return gmdate( 'Y-m-d\TH:i:s\Z', $mark['began'] );
	}

	/**
	 * Checks whether the log has the end of a change.
	 *
	 * @param array<string, mixed>       $about   Audit fields `event`, and for a roll back `change`.
	 * @param array<string, mixed>       $result  Result of the change.
	 * @param list<array<string, mixed>> $records Audit records of the run, oldest first.
	 * @param array<string, mixed>|null  $start   Record of a start without an end.
	 */
	private static function is_recorded( array $about, array $result, array $records, ?array $start ): bool {
		if ( 'rollback' === $about['event'] && [] !== ( $result['files'] ?? [] ) ) {
			return [] === array_diff( $result['files'], self::restored( $about['change'], $records ) );
		}
		return isset( $result['audit_reference'] ) ? in_array( $result['audit_reference'], array_column( array_column( $records, 'result' ), 'audit_reference' ), true ) : null === $start;
	}

	/**
	 * Returns the files of a change that the records of its roll backs name.
	 *
	 * @param string                     $id      Id of the change.
	 * @param list<array<string, mixed>> $records Audit records of the run.
	 * @return list<string>
	 */
	private static function restored( string $id, array $records ): array {
		$files = [];
		foreach ( $records as $record ) {
			if ( 'rollback' === $record['event'] && ( $record['change'] ?? '' ) === $id ) {
				array_push( $files, ...( $record['result']['files'] ?? [] ) );
			}
		}
		return $files;
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
		$restored = array_values( array_diff( $change['undone'], self::restored( $id, $records ) ) );
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
			$all ? __( 'All files of the change were restored. A later request wrote this record.', 'codebox' )
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
