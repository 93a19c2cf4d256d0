<?php
/**
 * Report of a run as text.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\PlainText;
use WPCodebox\Run\TaskTexts;

defined( 'ABSPATH' ) || exit;

/**
 * Builds the report of `run-agent-task`: outcome, isolation, files, checks, cost, bundle, and the exact
 * follow-up commands.
 */
final class RunReport {

	private const SIGNS = [
		'added'    => 'A',
		'modified' => 'M',
		'deleted'  => 'D',
	];

	/**
	 * Returns the report of an ended run.
	 *
	 * @param array<string, mixed> $run `wp-codebox/agent-task-run/v1`.
	 */
	public static function text( array $run ): string {
		$lines = array_merge(
			[ self::row( 'Outcome', sprintf( '%s. %s', $run['run']['outcome'], $run['summary'] ?? '' ) ) ],
			self::error( $run ),
			[ self::row( 'Isolation', self::isolation( $run ) ) ],
			self::files( $run ),
			self::checks( $run ),
			self::model( $run ),
			self::cost( $run ),
			self::bundle( $run ),
			array_map( fn( string $notice ): string => self::row( 'Note', $notice ), array_filter( (array) ( $run['notices'] ?? [] ), 'is_string' ) ),
			[ '', 'Nothing on this site was changed.' ],
			self::next( $run )
		);
		return implode( "\n", $lines );
	}

	/**
	 * Returns the report of a run that is still active or ended without a result.
	 *
	 * @param array<string, mixed> $run `wp-codebox/run-handle/v1` or `wp-codebox/run/v1`.
	 */
	public static function running( array $run ): string {
		$id    = (string) $run['run_id'];
		$alive = 'running' === $run['status'];
		$lines = array_merge(
			[
				self::row( 'Run', $id ),
				self::row( 'Status', sprintf( '%s, started %s', (string) $run['status'], (string) $run['created_at'] ) ),
			],
			self::texts( $run ),
			self::error( $run ),
			[ '', 'Nothing on this site was changed.', '', 'Next:', '  wp codebox runs events ' . $id . ' --follow' ],
			$alive ? [ '  wp codebox runs get ' . $id, '  wp codebox runs cancel ' . $id ] : []
		);
		return implode( "\n", $lines );
	}

	/**
	 * Returns the texts of the run's task.
	 *
	 * @param array<string, mixed> $run `wp-codebox/run-handle/v1` or `wp-codebox/run/v1`.
	 * @return list<string>
	 */
	private static function texts( array $run ): array {
		$given = array_intersect_key( TaskTexts::labels(), $run );
		return array_map( static fn( string $name, string $label ): string => self::row( $label, str_replace( "\n", ' ', (string) $run[ $name ] ) ), array_keys( $given ), $given );
	}

	/**
	 * Returns isolation level and network policy, as probes inside the guest measured them.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 */
	private static function isolation( array $run ): string {
		$report = (array) ( $run['isolation'] ?? [] );
		$words  = [];
		foreach ( (array) ( $report['axes'] ?? [] ) as $axis ) {
			if ( 'network' === ( $axis['axis'] ?? '' ) ) {
				$words[] = 'enforced' === $axis['enforced'] ? sprintf( 'only the network access that the policy allows (%s)', (string) $axis['by'] ) : sprintf( 'network %s', (string) $axis['enforced'] );
			} elseif ( 'enforced' !== ( $axis['enforced'] ?? '' ) ) {
				$words[] = sprintf( '%s %s', (string) $axis['axis'], (string) $axis['enforced'] );
			}
		}
		return implode( '; ', array_merge( [ (string) ( $report['level'] ?? 'unknown' ) ], $words ) );
	}

	/**
	 * Returns the reason why the run did not succeed.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function error( array $run ): array {
		if ( empty( $run['error'] ) ) {
			return [];
		}
		$lines = [ self::row( 'Error', sprintf( '%s (%s)', (string) $run['error']['message'], (string) $run['error']['code'] ) ) ];
		foreach ( (array) ( $run['error']['hints'] ?? [] ) as $hint ) {
			$lines[] = self::row( '', '- ' . (string) $hint );
		}
		return $lines;
	}

	/**
	 * Lists changed files with lines added and removed.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function files( array $run ): array {
		$files = $run['changed_files'];
		if ( [] === $files ) {
			return [ self::row( 'Files', 'none changed' ) ];
		}
		$added   = array_sum( array_map( static fn( array $f ): int => (int) ( $f['insertions'] ?? 0 ), $files ) );
		$removed = array_sum( array_map( static fn( array $f ): int => (int) ( $f['deletions'] ?? 0 ), $files ) );
		$lines   = [ self::row( 'Files', sprintf( '%d changed, +%d -%d', count( $files ), $added, $removed ) ) ];
		foreach ( $files as $file ) {
			$count   = empty( $file['binary'] ) && isset( $file['insertions'] ) ? sprintf( '+%d -%d', (int) $file['insertions'], (int) ( $file['deletions'] ?? 0 ) ) : 'not text';
			$lines[] = self::row( '', sprintf( '%s %s (%s)', self::SIGNS[ $file['status'] ] ?? '?', PlainText::file_name( (string) $file['path'] ), $count ) );
		}
		return $lines;
	}

	/**
	 * Lists the checks, with the last output lines of each failed check.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function checks( array $run ): array {
		$checks = $run['checks'];
		if ( [] === $checks ) {
			return [ self::row( 'Checks', 'none were asked for (--check)' ) ];
		}
		$passed = count( array_filter( $checks, static fn( array $check ): bool => 'passed' === $check['status'] ) );
		$lines  = [ self::row( 'Checks', sprintf( '%d of %d passed, in a fresh sandbox', $passed, count( $checks ) ) ) ];
		foreach ( $checks as $check ) {
			$lines[] = self::row( '', sprintf( '%s: %s', $check['status'], $check['command'] ) );
			if ( 'passed' !== $check['status'] && '' !== trim( (string) ( $check['output_tail'] ?? '' ) ) ) {
				foreach ( array_slice( explode( "\n", trim( (string) $check['output_tail'] ) ), -10 ) as $line ) {
					$lines[] = self::row( '', '  ' . $line );
				}
			}
		}
		return $lines;
	}

	/**
	 * Returns the report line with the model and its usage; empty for a run without a model.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function model( array $run ): array {
		$said = (array) ( $run['run_metadata'] ?? [] );
		if ( ! isset( $said['model'] ) && ! isset( $said['usage'] ) ) {
			return [];
		}
		$name = isset( $said['model'] ) ? [ trim( ( $said['provider'] ?? '' ) . ' ' . $said['model'] ) ] : [];
		$used = isset( $said['usage'] ) ? [ Quantity::human_usage( (array) $said['usage'] ) ] : [];
		return [ self::row( 'Model', implode( ': ', array_merge( $name, $used ) ) ) ];
	}

	/**
	 * Returns the report line with wall-clock time, CPU time and peak memory of the run; empty without data.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function cost( array $run ): array {
		$cost = (array) ( $run['cost'] ?? [] );
		if ( [] === $cost ) {
			return [];
		}
		return [
			self::row(
				'Cost',
				sprintf(
					'%s wall, %s CPU, %s peak memory',
					Quantity::human_time( (int) ( $cost['wall_ms'] ?? 0 ) ),
					Quantity::human_time( (int) ( $cost['cpu_ms'] ?? 0 ) ),
					Quantity::human_bytes( (int) ( $cost['peak_memory_bytes'] ?? 0 ) )
				)
			),
		];
	}

	/**
	 * Returns the report lines with the artifact id of the bundle and the run id.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function bundle( array $run ): array {
		return [
			self::row( 'Bundle', (string) ( $run['artifact_id'] ?? 'none was written' ) ),
			self::row( 'Run', (string) $run['run']['run_id'] ),
		];
	}

	/**
	 * Lists the exact follow-up commands. The run id identifies the bundle: two runs with equal changes share
	 * an artifact id, never a run id.
	 *
	 * @param array<string, mixed> $run Run result, `wp-codebox/agent-task-run/v1`.
	 * @return list<string>
	 */
	private static function next( array $run ): array {
		if ( empty( $run['artifact_id'] ) || [] === $run['changed_files'] ) {
			return [];
		}
		$id    = (string) $run['run']['run_id'];
		$lines = [ '', 'Next:', '  wp codebox artifacts diff ' . $id ];
		if ( ! empty( $run['approvable'] ) ) {
			// A failed run may still contain useful files, so no command here applies all files without a
			// review.
			if ( $run['success'] ) {
				$lines[] = '  wp codebox artifacts apply ' . $id . ' --all';
			}
			$lines[] = '  wp codebox artifacts apply ' . $id . ' --approved-files=' . self::argument( (string) $run['changed_files'][0]['path'] );
		} else {
			$lines[] = '  This bundle cannot be applied; run the task again.';
		}
		$lines[] = '  wp codebox artifacts discard ' . $id;
		return $lines;
	}

	/**
	 * Quotes a path as one value of a flag that takes a list.
	 *
	 * @param string $path Path of a changed file.
	 */
	private static function argument( string $path ): string {
		if ( 1 === preg_match( '#^[A-Za-z0-9_./@%+-]+$#', $path ) ) {
			return $path;
		}
		$json = (string) wp_json_encode( [ $path ], JSON_UNESCAPED_SLASHES );
		return "'" . str_replace( "'", "'\\''", $json ) . "'";
	}

	/**
	 * Formats one line of the report.
	 *
	 * @param string $label Label of the line.
	 * @param string $text  Text after the label.
	 */
	private static function row( string $label, string $text ): string {
		return rtrim( sprintf( '%-11s%s', '' === $label ? '' : $label . ':', str_replace( "\n", ' ', $text ) ) );
	}
}
