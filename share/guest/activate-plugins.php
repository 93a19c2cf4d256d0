<?php
/**
 * Activates plugins in the order of their `Requires Plugins` headers.
 *
 * Request: {plugins: [file or directory below the plugins directory]}. Prints {activated: [file], failed:
 * {file: message}}. Exit status 1 when a plugin is not active or ended PHP; its name is then on standard
 * error.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;
require __DIR__ . '/exit-guard.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

/**
 * Returns the main file of a plugin given by directory or file.
 *
 * @param string $name Directory or file below the plugins directory.
 * @return string File below the plugins directory; the given name when no plugin matches.
 */
function plugin_main_file( string $name ): string {
	if ( is_file( WP_PLUGIN_DIR . '/' . $name ) ) {
		return $name;
	}
	$files = array_keys( get_plugins( '/' . $name ) );
	return 1 === count( $files ) ? $name . '/' . $files[0] : $name;
}

/**
 * Sorts plugins after the plugins they require; plugins in a dependency cycle keep their order.
 *
 * @param string[] $files Main files of the plugins.
 * @return string[]
 */
function by_dependency( array $files ): array {
	$needs = array();
	foreach ( $files as $file ) {
		$path           = WP_PLUGIN_DIR . '/' . $file;
		$data           = is_file( $path ) ? get_plugin_data( $path, false, false ) : array();
		$needs[ $file ] = array_filter( array_map( 'trim', explode( ',', $data['RequiresPlugins'] ?? '' ) ) );
	}
	$ordered = array();
	while ( $needs ) {
		$waiting = array_map( 'dirname', array_keys( $needs ) );
		$next    = null;
		foreach ( $needs as $file => $slugs ) {
			if ( ! array_intersect( $slugs, array_diff( $waiting, array( dirname( $file ) ) ) ) ) {
				$next = $file;
				break;
			}
		}
		$next    ??= array_key_first( $needs );
		$ordered[] = $next;
		unset( $needs[ $next ] );
	}
	return $ordered;
}

wp_clean_plugins_cache( false );
wp_set_current_user( 1 );
$codebox_answer = array(
	'activated' => array(),
	'failed'    => array(),
);
foreach ( by_dependency( array_map( __NAMESPACE__ . '\plugin_main_file', $codebox_question['plugins'] ) ) as $codebox_now ) {
	$codebox_doing = "the plugin {$codebox_now} was activated";
	// Output of a plugin must not become part of the reply.
	ob_start();
	try {
		$codebox_result  = activate_plugin( $codebox_now );
		$codebox_problem = is_wp_error( $codebox_result ) && 'unexpected_output' !== $codebox_result->get_error_code() ? $codebox_result->get_error_message() : '';
	} catch ( \Throwable $codebox_thrown ) {
		$codebox_problem = sprintf( '%s in %s:%d', $codebox_thrown->getMessage(), basename( $codebox_thrown->getFile() ), $codebox_thrown->getLine() );
	}
	// Counts the levels down, because an output buffer that was created as non-removable stays open.
	for ( $codebox_level = ob_get_level(); $codebox_level > 0; --$codebox_level ) {
		fwrite( STDERR, (string) @ob_get_clean() );
	}
	if ( '' === $codebox_problem && is_plugin_active( $codebox_now ) ) {
		$codebox_answer['activated'][] = $codebox_now;
	} else {
		$codebox_problem                          = '' === $codebox_problem ? 'WordPress did not activate the plugin' : wp_strip_all_tags( $codebox_problem );
		$codebox_answer['failed'][ $codebox_now ] = $codebox_problem;
		fwrite( STDERR, "{$codebox_now}: {$codebox_problem}\n" );
	}
}
$codebox_doing = '';

echo wp_json_encode( array( 'failed' => (object) $codebox_answer['failed'] ) + $codebox_answer ), "\n";
exit( $codebox_answer['failed'] ? 1 : 0 );
