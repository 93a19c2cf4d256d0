<?php
/**
 * Runs of the stand-in as far as their bundles tell; for stand-ins without a registry of runs.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Runs {

	public static function list( string $site, array $filter = [] ): array {
		$runs = [];
		foreach ( Artifacts::list( $site ) as $row ) {
			$notes  = json_decode( (string) file_get_contents( $row['directory'] . '/metadata.json' ), true );
			$runs[] = [
				'run_id'     => $row['run_id'],
				'status'     => 'ended',
				'created_at' => $row['created_at'],
				'goal'       => $notes['task']['goal'] ?? '',
				'provenance' => $notes['provenance'] ?? [],
			];
		}
		return [
			'schema' => 'wp-codebox/run-list/v1',
			'total'  => count( $runs ),
			'runs'   => array_slice( $runs, $filter['offset'] ?? 0, $filter['limit'] ?? 50 ),
		];
	}
}
