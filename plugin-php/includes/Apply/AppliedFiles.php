<?php
/**
 * Finds out which files of a bundle are applied now.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\DirectApply\DirectApply;

defined( 'ABSPATH' ) || exit;

/** Receives the audit records of one bundle, oldest first. Holds state and applied files after the last record. */
final class AppliedFiles {

	/**
	 * Adapter and reference by path of each applied file.
	 *
	 * @var array<string, array{adapter: string, reference: string}>
	 */
	private array $files = [];

	/** State while no file is applied. */
	private string $state = BundleHistory::OPEN;

	/**
	 * Updates state and applied files with the next audit record.
	 *
	 * @param array<string, mixed> $record Audit record.
	 * @return list<string> Paths that the operation wrote or restored.
	 */
	public function follow( array $record ): array {
		$success = 'success' === ( $record['status'] ?? '' );
		$result  = (array) ( $record['result'] ?? [] );
		switch ( $record['event'] ) {
			case 'apply':
				return $success ? $this->apply( (array) ( $result['applied_files'] ?? [] ), $record ) : $this->fail( $result );
			case 'review':
				return $success ? $this->review( $record, $result ) : [];
			case 'rollback':
				return isset( $result['files'] ) || $success ? $this->restore( $record, $result ) : [];
			case 'discard':
				$this->state = $success ? BundleHistory::DISCARDED : $this->state;
				return [];
			case 'import':
				// A discarded bundle can be imported again.
				$this->state = $success && BundleHistory::DISCARDED === $this->state ? BundleHistory::OPEN : $this->state;
				return [];
			default:
				return [];
		}
	}

	/**
	 * Returns the state; null when records older than those of follow() could change it.
	 *
	 * @param int  $changed  Number of changed files of the bundle; 0 when it is unknown.
	 * @param bool $complete Whether follow() got every record of the bundle.
	 */
	public function state( int $changed, bool $complete ): ?string {
		if ( BundleHistory::DISCARDED !== $this->state && [] !== $this->files ) {
			return count( $this->files ) < $changed ? BundleHistory::APPLIED_IN_PART : BundleHistory::APPLIED;
		}
		return $complete || BundleHistory::OPEN !== $this->state ? $this->state : null;
	}

	/**
	 * Returns the applied files in the order of their applies.
	 *
	 * @return list<array{path: string, adapter: string, reference: string}>
	 */
	public function files(): array {
		$rows = [];
		foreach ( $this->files as $path => $file ) {
			$rows[] = [
				'path' => (string) $path,
			] + $file;
		}
		return $rows;
	}

	/**
	 * Adds applied files, each with the adapter that wrote it. An earlier entry of the same file is replaced.
	 *
	 * @param array<mixed>         $paths  Paths as in changed-files.
	 * @param array<string, mixed> $record Audit record.
	 * @return list<string>
	 */
	private function apply( array $paths, array $record ): array {
		$paths = array_values( array_map( 'strval', $paths ) );
		foreach ( $paths as $path ) {
			unset( $this->files[ $path ] );
			$this->files[ $path ] = [
				'adapter'   => (string) ( $record['adapter'] ?? '' ),
				'reference' => (string) ( $record['result']['audit_reference'] ?? '' ),
			];
		}
		return $paths;
	}

	/**
	 * Updates the state after a failed apply: direct apply may have written the files and then restored them.
	 *
	 * @param array<string, mixed> $result Apply result.
	 * @return list<string>
	 */
	private function fail( array $result ): array {
		if ( 'worse' === ( $result['health']['status'] ?? '' ) && [] === ( $result['conflicts'] ?? [] ) ) {
			$this->state = BundleHistory::ROLLED_BACK;
		}
		return [];
	}

	/**
	 * Updates state and applied files after a review decision. An approval adds files only if the host plugin that
	 * handled the decision applied the change itself; otherwise the apply has its own audit record.
	 *
	 * @param array<string, mixed> $record Audit record.
	 * @param array<string, mixed> $result Result of the decision.
	 * @return list<string>
	 */
	private function review( array $record, array $result ): array {
		if ( 'reject' === ( $record['action'] ?? '' ) ) {
			$this->state = BundleHistory::REJECTED;
		}
		$known = array_column( $this->files, 'reference' );
		if ( 'wp-codebox/apply-result/v1' !== ( $result['schema'] ?? '' ) || in_array( $result['audit_reference'] ?? '', $known, true ) ) {
			return [];
		}
		return $this->apply( (array) ( $result['applied_files'] ?? $record['approved_files'] ?? [] ), $record );
	}

	/**
	 * Removes files that a roll back restored. The record names them relative to their mount; without names,
	 * every file of the change was restored.
	 *
	 * @param array<string, mixed> $record Audit record.
	 * @param array<string, mixed> $result Result of the rollback.
	 * @return list<string>
	 */
	private function restore( array $record, array $result ): array {
		$names    = isset( $result['files'] ) ? array_map( 'strval', (array) $result['files'] ) : null;
		$restored = [];
		foreach ( $this->files as $path => $file ) {
			$of_change = DirectApply::ADAPTER === $file['adapter'] && ( $record['change'] ?? '' ) === $file['reference'];
			$ends      = static fn( string $name ): bool => str_ends_with( '/' . $path, '/' . $name );
			if ( $of_change && ( null === $names || [] !== array_filter( $names, $ends ) ) ) {
				$restored[] = (string) $path;
			}
		}
		$this->files = array_diff_key( $this->files, array_flip( $restored ) );
		if ( [] === $this->files ) {
			$this->state = BundleHistory::ROLLED_BACK;
		}
		return $restored;
	}
}
