<?php
/**
 * Activates one plugin of a component (host code that the guest mounts read-only).
 *
 * Request: {slug, plugin, answer}. Reply: {status: ready|failed, message}. A plugin that ends PHP leaves no
 * reply and stays inactive.
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
wp_set_current_user( 1 );

// Output that a plugin prints during activation does not make it fail; the loop below passes it to standard output.
ob_start();
try {
	wp_clean_plugins_cache( false );
	$codebox_result = activate_plugin( $codebox_question['plugin'] );
	if ( is_wp_error( $codebox_result ) && 'unexpected_output' !== $codebox_result->get_error_code() ) {
		$codebox_message = $codebox_result->get_error_message();
	} else {
		$codebox_message = is_plugin_active( $codebox_question['plugin'] ) ? '' : 'WordPress did not activate the plugin';
	}
} catch ( Throwable $codebox_thrown ) {
	$codebox_message = WPCodebox\Guest\thrown_sentence( $codebox_thrown );
}
// Counts the levels down, because an output buffer that was created as non-removable stays open.
for ( $codebox_level = ob_get_level(); $codebox_level > 0; --$codebox_level ) {
	fwrite( STDOUT, (string) @ob_get_clean() );
}

WPCodebox\Guest\answer(
	$codebox_question,
	'' === $codebox_message ? array( 'status' => 'ready' ) : array(
		'status'  => 'failed',
		'message' => $codebox_message,
	)
);
