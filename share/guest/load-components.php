<?php
/**
 * Loads the components of a run (read-only plugins from the host) that are must-use plugins, in their order.
 *
 * The guest's own must-use plugin requires this file. The supervisor writes the list and has checked the entry
 * files. A component that throws is recorded and skipped, so its readiness probe can report the reason; a
 * component that ends PHP ends WordPress too.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Requires one file in a scope with no other variable than its path.
 *
 * @param string $file Path of the file.
 */
function load_component( string $file ): void {
	require_once $file;
}

/**
 * Loads the components in the supervisor's list. Returns the error messages, by slug, of those that threw.
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
		// If the guest's root is a host directory, a component is a symlink, and WordPress needs its real path.
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
 * Errors of must-use components that failed to load, by slug.
 */
$GLOBALS['wp_codebox_component_failures'] = load_components( WPMU_PLUGIN_DIR . '/contained-runtime' );
