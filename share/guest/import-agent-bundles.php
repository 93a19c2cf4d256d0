<?php
/**
 * Imports agent bundles (packaged agent definitions) with the importer that a plugin in the guest provides.
 *
 * Request: {bundles: [{source|bundle, slug, on_conflict, owner_id, token_env, import_principal}], answer}.
 * Reply: {status: imported|failed|unavailable, message}. The importer returns a list with one row per bundle,
 * each with `success`.
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';

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
			'message' => 'the importer did not return one row per bundle',
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

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
wp_set_current_user( 1 );

$codebox_bundles = array();
foreach ( $codebox_question['bundles'] as $codebox_row ) {
	if ( isset( $codebox_row['source'] ) ) {
		// Environment variable that is set only when the guest has no root file system of its own.
		$codebox_row['source'] = getenv( 'CODEBOX_ROOT' ) . $codebox_row['source'];
	}
	$codebox_row['owner_id'] = $codebox_row['owner_id'] ?? 1;
	$codebox_bundles[]       = $codebox_row;
}
WPCodebox\Guest\answer( $codebox_question, codebox_import( $codebox_bundles ) );
