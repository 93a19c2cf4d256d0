<?php
/**
 * Tells from the audit log what became of a bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\DirectApply\ChangeMarks;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The audit log is the only source, besides records of changes that could not be written into it yet. The extension
 * searches the last 64 MiB of the log without verifying its hash chain. If a bundle may have
 * records before that part, its `history_complete` is false; then it has no state unless a record in that part
 * determines the state.
 */
final class BundleHistory {

	public const OPEN            = 'open';
	public const APPLIED_IN_PART = 'applied-in-part';
	public const APPLIED         = 'applied';
	public const ROLLED_BACK     = 'rolled-back';
	public const REJECTED        = 'rejected';
	public const DISCARDED       = 'discarded';

	/** Operation by audit event. Other events, such as exports and tool calls, are no part of the history. */
	private const OPERATIONS = [
		'apply-approved' => 'apply',
		'apply'          => 'apply',
		'rollback'       => 'rollback',
		'review'         => 'review',
		'stage-apply'    => 'stage-apply',
		'discard'        => 'discard',
		'import'         => 'import',
	];

	private const PER_PAGE = 50;

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Returns state, history and applied files of one bundle.
	 *
	 * @param array<string, mixed> $artifact Bundle, as far as it can be read.
	 * @return array<string, mixed> `state?`, `history`, `history_complete`, `applied_files`.
	 */
	public function of( array $artifact ): array {
		$run     = (string) ( $artifact['run_id'] ?? '' );
		$found   = Artifacts::auditOf( $this->site->id(), [ $run ] );
		$whole   = self::reaches( $found, $artifact );
		$changes = new AppliedFiles();
		$rows    = self::rows( [ ...$found['records'], ...self::missing( [ $run ] ) ], $changes );
		$state   = $changes->state( count( ArtifactService::changed_files( $artifact ) ), $whole );
		return ( null === $state ? [] : [ 'state' => $state ] ) + [
			'history'          => $rows,
			'history_complete' => $whole,
			'applied_files'    => $changes->files(),
		];
	}

	/**
	 * Lists what happened to the bundles of this site, newest first.
	 *
	 * @param array<string, mixed> $input Ability input with `before?`, `per_page?`.
	 * @return array<string, mixed> `wp-codebox/artifact-history/v1`.
	 */
	public function page( array $input ): array {
		$found = Artifacts::auditOfOperations( $this->site->id(), self::OPERATIONS, (int) ( $input['before'] ?? 0 ), (int) ( $input['per_page'] ?? self::PER_PAGE ) );
		$rows  = [];
		foreach ( $found['records'] as $record ) {
			$bundle = array_intersect_key( $record, [ 'artifact_id' => 1, 'run_id' => 1 ] );
			$before = end( $rows ) ?: [];
			if ( ( $before['run_id'] ?? '' ) !== ( $record['run_id'] ?? '' ) || ! self::repeats( $record, $before ) ) {
				$result = (array) ( $record['result'] ?? [] );
				$rows[] = $bundle + self::row( $record, array_map( 'strval', array_values( (array) ( $result['applied_files'] ?? $result['files'] ?? [] ) ) ) );
			}
		}
		return [
			'success'  => true,
			'schema'   => 'wp-codebox/artifact-history/v1',
			'history'  => array_reverse( $rows ),
			'complete' => $found['complete'],
		] + ( [] === $rows ? [] : [ 'before' => $found['records'][0]['seq'] ] );
	}

	/**
	 * Adds `state` to the rows of a list; not to a row whose state is unknown.
	 *
	 * @param list<array<string, mixed>> $bundles Rows with `run_id` and `changed_files`, the number of changed files.
	 * @return list<array<string, mixed>>
	 */
	public function with_state( array $bundles ): array {
		$runs  = array_values( array_filter( array_map( static fn( array $row ): string => (string) ( $row['run_id'] ?? '' ), $bundles ) ) );
		$found = [] === $runs ? [ 'records' => [], 'complete' => true, 'since' => null ] : Artifacts::auditOf( $this->site->id(), $runs );
		$of    = array_fill_keys( $runs, [] );
		foreach ( [ ...$found['records'], ...self::missing( $runs ) ] as $record ) {
			$run = (string) ( $record['run_id'] ?? $record['artifact_id'] );
			if ( isset( $of[ $run ] ) ) {
				$of[ $run ][] = $record;
			}
		}
		foreach ( $bundles as $index => $row ) {
			$changes = new AppliedFiles();
			self::rows( $of[ $row['run_id'] ?? '' ] ?? [], $changes );
			$count = $row['changed_files'] ?? 0;
			$state = $changes->state( is_int( $count ) ? $count : 0, self::reaches( $found, $row ) );
			if ( null !== $state ) {
				$bundles[ $index ]['state'] = $state;
			}
		}
		return $bundles;
	}

	/**
	 * Returns the records of runs that are not in the audit log yet, because it could not be written.
	 *
	 * @param list<string> $runs Run ids.
	 * @return list<array<string, mixed>>
	 */
	private static function missing( array $runs ): array {
		$records = [];
		foreach ( ChangeMarks::missing_records() as $record ) {
			if ( in_array( $record['run_id'], $runs, true ) ) {
				$record['result']['message'] = Sentence::join( ' ', [ (string) ( $record['result']['message'] ?? '' ), __( 'This record is not in the audit log yet.', 'codebox' ) ] );
				$records[] = $record;
			}
		}
		return $records;
	}

	/**
	 * Checks whether the search found every record of a bundle: it reached the start of the log, or a time before
	 * the bundle was made.
	 *
	 * @param array<string, mixed> $found  Result of the search.
	 * @param array<string, mixed> $bundle Bundle with `created_at`.
	 */
	private static function reaches( array $found, array $bundle ): bool {
		$since = strtotime( (string) ( $found['since'] ?? '' ) );
		$made  = strtotime( (string) ( $bundle['created_at'] ?? '' ) );
		return true === $found['complete'] || ( false !== $since && false !== $made && $since < $made );
	}

	/**
	 * Returns the rows of a history, oldest first, and passes each record to `$changes`. Leaves out a start whose end was
	 * recorded (an end belongs to the last start before it), and an approval if the apply that it caused has a row.
	 *
	 * @param list<array<string, mixed>> $records Audit records of one run, oldest first.
	 * @param AppliedFiles               $changes Finds out which files are applied.
	 * @return list<array<string, mixed>>
	 */
	private static function rows( array $records, AppliedFiles $changes ): array {
		$rows    = [];
		$started = [];
		foreach ( $records as $record ) {
			$event = (string) ( $record['event'] ?? '' );
			if ( ! isset( self::OPERATIONS[ $event ] ) ) {
				continue;
			}
			$operation = self::OPERATIONS[ $event ];
			$start     = 'started' === ( $record['status'] ?? '' );
			if ( ! $start && [] !== ( $started[ $operation ] ?? [] ) ) {
				unset( $rows[ array_pop( $started[ $operation ] ) ] );
			}
			$touched = $changes->follow( $record );
			if ( self::repeats( $record, end( $rows ) ?: [] ) ) {
				continue;
			}
			$rows[] = self::row( $record, $touched );
			if ( $start ) {
				$started[ $operation ][] = array_key_last( $rows );
			}
		}
		return array_values( $rows );
	}

	/**
	 * Checks whether a record of an approval says the same as the row of the apply before it.
	 *
	 * @param array<string, mixed> $record Audit record.
	 * @param array<string, mixed> $before Last row.
	 */
	private static function repeats( array $record, array $before ): bool {
		if ( 'review' !== $record['event'] || 'approve' !== ( $record['action'] ?? '' ) || 'apply' !== ( $before['event'] ?? '' ) ) {
			return false;
		}
		$reference = $record['result']['audit_reference'] ?? null;
		$error     = $record['error']['code'] ?? null;
		return ( null !== $reference && ( $before['reference'] ?? null ) === $reference ) || ( null !== $error && ( $before['error'] ?? null ) === $error );
	}

	/**
	 * Returns the row of a record. Missing values are omitted.
	 *
	 * @param array<string, mixed> $record  Audit record.
	 * @param list<string>         $touched Paths that the operation wrote or restored.
	 * @return array<string, mixed>
	 */
	private static function row( array $record, array $touched ): array {
		$result  = (array) ( $record['result'] ?? [] );
		$event   = (string) $record['event'];
		$files   = [] === $touched ? array_values( (array) ( $record['approved_files'] ?? [] ) ) : $touched;
		$message = $record['reason'] ?? $result['message'] ?? $record['error']['message'] ?? '';
		$row     = [
			'seq'       => (int) ( $record['seq'] ?? 0 ),
			'event'     => self::OPERATIONS[ $event ],
			'action'    => $record['action'] ?? '',
			'status'    => (string) ( $record['status'] ?? 'success' ),
			'time'      => (string) ( $record['timestamp'] ?? '' ),
			'who'       => array_intersect_key( (array) ( $record['requester'] ?? [] ), [ 'kind' => 1, 'id' => 1, 'login' => 1 ] ) + [ 'kind' => 'none' ],
			'approver'  => empty( $record['approver_claimed'] ) ? '' : ( $record['approver'] ?? '' ),
			// Plugins of the site supplied some recorded values; those of another type are left out.
			'files'     => array_values( array_filter( $files, 'is_string' ) ),
			'adapter'   => $record['adapter'] ?? '',
			'reference' => $result['audit_reference'] ?? $record['change'] ?? '',
			'message'   => is_string( $message ) ? $message : '',
			'error'     => $record['error']['code'] ?? '',
		];
		return array_filter( $row, static fn( mixed $value ): bool => '' !== $value && [] !== $value );
	}
}
