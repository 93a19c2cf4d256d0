<?php
/**
 * Imports agent bundles (packaged agent definitions) with the importer that a plugin in the guest provides.
 *
 * The importer is the function wp_agent_import_runtime_bundles(). It returns a list with one row per bundle, each
 * with `success`.
 *
 * @package WPCodebox
 */

/**
 * Returns the bundles as the importer gets them: with the paths of their files and their owners.
 *
 * @param list<array<string, mixed>> $rows Bundles; a source is a file of the guest.
 * @return list<array<string, mixed>>
 */
function codebox_bundles( array $rows ): array {
	foreach ( $rows as $index => $row ) {
		if ( isset( $row['source'] ) ) {
			// Environment variable that is set only when the guest has no root file system of its own.
			$rows[ $index ]['source'] = getenv( 'CODEBOX_ROOT' ) . $row['source'];
		}
		$rows[ $index ]['owner_id'] = $row['owner_id'] ?? 1;
	}
	return $rows;
}

/**
 * Calls the importer and builds the reply.
 *
 * @param list<array<string, mixed>> $bundles Bundles; a source is a file of the guest.
 * @return array<string, mixed> Reply.
 */
function codebox_import( array $bundles ): array {
	if ( ! function_exists( 'wp_agent_import_runtime_bundles' ) ) {
		return array( 'status' => 'unavailable' );
	}
	try {
		$results = wp_agent_import_runtime_bundles( $bundles, array( 'owner_id' => get_current_user_id() ) );
	} catch ( Throwable $thrown ) {
		return array(
			'status'  => 'failed',
			'message' => WPCodebox\Guest\thrown_sentence( $thrown ),
		);
	}
	if ( ! is_array( $results ) || count( $results ) !== count( $bundles ) ) {
		return array(
			'status'  => 'failed',
			'message' => 'the importer did not return one result per bundle',
		);
	}
	foreach ( array_values( $results ) as $index => $row ) {
		if ( ! is_array( $row ) || true !== ( $row['success'] ?? null ) ) {
			$message = is_array( $row ) && is_string( $row['error']['message'] ?? null ) ? $row['error']['message'] : 'the importer gave no reason';
			return array(
				'status'  => 'failed',
				'message' => sprintf( 'bundle %d: %s', $index, $message ),
			);
		}
	}
	return array( 'status' => 'imported' );
}
