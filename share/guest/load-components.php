<?php
/**
 * Loads the must-use components of a run, in their order.
 *
 * Required by the guest's own must-use plugin. The list is made by the runner; entries were
 * found there. A component that throws is noted and passed over, so that whoever asks for
 * its readiness hears why; one that ends PHP takes WordPress with it.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Requires one file with no variables of ours in its scope but its own path.
 *
 * @param string $file Path.
 */
function load_component( string $file ): void {
	require_once $file;
}

/**
 * Loads what the list names; answers slug to sentence of those that threw.
 *
 * @param string $directory Directory that holds the components.
 * @return array<string, string>
 */
function load_components( string $directory ): array {
	$list = rtrim( dirname( ABSPATH ), '/' ) . '/run/codebox/components.json';
	$rows = is_readable( $list ) ? json_decode( (string) file_get_contents( $list ), true ) : array();

	$failures = array();
	foreach ( is_array( $rows ) ? $rows : array() as $row ) {
		if ( 'mu-plugin' !== ( $row['load_as'] ?? '' ) ) {
			continue;
		}
		$file = $directory . '/' . $row['slug'] . '/' . $row['entry'];
		// Where the guest's root is a directory of the host, a component is a link.
		wp_register_plugin_realpath( $file );
		try {
			load_component( $file );
		} catch ( \Throwable $thrown ) {
			$failures[ $row['slug'] ] = sprintf( '%s in %s:%d', $thrown->getMessage(), basename( $thrown->getFile() ), $thrown->getLine() );
		}
	}
	return $failures;
}

/**
 * Why must-use components of this request are not loaded, by slug.
 */
$GLOBALS['wp_codebox_component_failures'] = load_components( WPMU_PLUGIN_DIR . '/contained-runtime' );
