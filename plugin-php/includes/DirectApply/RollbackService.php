<?php
/**
 * Takes applied changes back.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use Throwable;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Changes;
use WPCodebox\Native\NotFoundException;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Restores the files of the last change that this site applied from a bundle. A file that changed since is
 * listed as a conflict and left as it is. While the audit log cannot be written, files are restored all the same, and a
 * later request writes the record.
 */
final class RollbackService {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate   $gate      Check that the PHP extension is loaded and its version fits.
	 * @param ArtifactService $artifacts Reader of the artifact bundles.
	 * @param Site            $site      Site the plugin runs on.
	 * @param HealthCheck     $health    Names the pages and logs that show whether the site works.
	 * @param AuditTrail      $audit     Audit log that records each roll back.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ArtifactService $artifacts,
		private readonly Site $site,
		private readonly HealthCheck $health,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Restores the files of the last applied change of a bundle.
	 *
	 * @param array<string, mixed> $input `artifact_id`, `files?`: paths as in changed-files or relative to the plugin or theme.
	 * @return array<string, mixed> `wp-codebox/artifact-rollback/v1`.
	 * @throws Failure When nothing was restored; the audit log records the failure too.
	 */
	public function roll_back( array $input ): array {
		$this->gate->check();
		$running = new RunningChange( $this->site );
		$record  = [ 'artifact_id' => (string) ( $input['artifact_id'] ?? '' ) ];
		try {
			$changes  = Changes::list( $this->site->id() );
			$artifact = $this->bundle( $input, $changes );
			$change   = self::last_change( $artifact, $changes );
			$record   = [
				'artifact_id' => (string) $artifact['artifact_id'],
				'run_id'      => (string) $artifact['run_id'],
				'change'      => $change['id'],
			];
			$files    = self::checked( $artifact, $change, array_values( array_map( 'strval', (array) ( $input['files'] ?? [] ) ) ) );
			$this->write( $record + [ 'status' => 'started' ] );
			$result = $running->during( [ 'event' => 'rollback' ] + $record, fn( string $check ): array => Changes::rollBack( $this->site->id(), $change['id'], $files, $this->health->options( $check ), [ OpcodeCache::class, 'drop' ] ) );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'rollback', $record, $thrown );
		}
		$success = 'restored' === $result['status'];
		$message = ChangeReport::sentence( $result );
		$end     = [
			'status' => $success ? 'success' : 'failure',
			'result' => array_intersect_key( $result, [ 'status' => 1, 'files' => 1, 'conflicts' => 1 ] ) + [ 'message' => Sentence::english( $message ) ],
		];
		$audit   = $this->write( $record + [ 'adapter' => DirectApply::ADAPTER ] + $end );
		if ( null === $audit ) {
			$running->end_unrecorded( $this->audit->requester(), $end );
			$message = Sentence::join( ' ', [ $message, __( 'The audit log cannot be written now, so a later request writes the record of this; make the state directory writable for its owner, and check its free space.', 'codebox' ) ] );
		} else {
			$running->end();
		}
		return [
			'success'     => $success,
			'schema'      => 'wp-codebox/artifact-rollback/v1',
			'artifact_id' => $record['artifact_id'],
			'run_id'      => $record['run_id'],
			'result'      => $result + [ 'message' => $message ],
		] + ( null === $audit ? [] : [ 'audit' => ArtifactService::audit_reference( $audit ) ] );
	}

	/**
	 * Appends a record to the audit log; returns null when the log cannot be written.
	 *
	 * @param array<string, mixed> $record Fields of the record.
	 * @return array<string, mixed>|null Stored record with `seq` and `hash`.
	 */
	private function write( array $record ): ?array {
		try {
			return $this->audit->write( 'rollback', $record );
		} catch ( Failure ) {
			return null;
		}
	}

	/**
	 * Returns a bundle. If it was discarded, returns only its ids, which its applied changes still have.
	 *
	 * @param array<string, mixed>       $input   Ability input with `artifact_id`.
	 * @param list<array<string, mixed>> $changes Applied changes of this site.
	 * @return array<string, mixed> Bundle with `artifact_id` and `run_id`.
	 * @throws NotFoundException When neither a bundle nor a single bundle of the changes has the reference.
	 */
	private function bundle( array $input, array $changes ): array {
		try {
			return $this->artifacts->artifact( $input );
		} catch ( NotFoundException $exception ) {
			$reference = $this->artifacts->reference( $input );
			$named     = array_filter( array_column( $changes, 'bundle' ), static fn( array $bundle ): bool => str_starts_with( $bundle['run_id'] ?? '', $reference ) || str_starts_with( $bundle['artifact_id'], $reference ) );
			$bundles   = array_column( $named, null, 'run_id' );
			if ( 1 !== count( $bundles ) ) {
				throw $exception;
			}
			return reset( $bundles );
		}
	}

	/**
	 * Returns the newest applied change of a bundle. Skips changes that were taken back completely.
	 *
	 * @param array<string, mixed>       $artifact Bundle.
	 * @param list<array<string, mixed>> $changes  Applied changes of this site, newest first.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_apply_not_found`, `wp_codebox_apply_undone`.
	 */
	private static function last_change( array $artifact, array $changes ): array {
		$of_bundle = array_filter( $changes, static fn( array $change ): bool => ( $change['bundle']['run_id'] ?? '' ) === $artifact['run_id'] );
		foreach ( $of_bundle as $change ) {
			if ( count( $change['undone'] ) < count( $change['files'] ) ) {
				return $change;
			}
		}
		if ( [] !== $of_bundle ) {
			throw Failure::because( ErrorCode::ApplyUndone, __( 'The change of this bundle was taken back already; there is nothing left to restore.', 'codebox' ) );
		}
		throw Failure::because(
			ErrorCode::ApplyNotFound,
			__( 'Codebox itself has written no change of this bundle into this site, so there is nothing that it could take back.', 'codebox' ),
			[ __( 'If another plugin applied the change, take it back with that plugin; the audit log has the reference that the plugin reported.', 'codebox' ) ]
		);
	}

	/**
	 * Checks that the bundle changes the files that the caller named. Undo accepts guest paths and paths relative to the mount.
	 *
	 * @param array<string, mixed> $artifact Bundle.
	 * @param array<string, mixed> $change   Applied change of the bundle.
	 * @param list<string>         $files    Files as the caller named them.
	 * @return list<string> The same files, each once.
	 * @throws Failure `wp_codebox_approved_files_invalid` for a file that the bundle does not change.
	 */
	private static function checked( array $artifact, array $change, array $files ): array {
		$rows    = ArtifactService::changed_files( $artifact );
		$known   = array_merge( $change['files'], array_column( $rows, 'path' ), array_column( $rows, 'relativePath' ) );
		$unknown = array_values( array_diff( $files, $known ) );
		if ( [] !== $unknown ) {
			/* translators: %s: path. */
			throw Failure::because( ErrorCode::ApprovedFilesInvalid, Sentence::of( __( 'The bundle does not change the file %s; use paths from its list of changed files.', 'codebox' ), $unknown[0] ) );
		}
		return array_values( array_unique( $files ) );
	}
}
