<?php
/** Activates a plugin. Input: plugin, either its main file below the plugins directory or its directory. */

declare(strict_types=1);
$codebox_input = json_decode( (string) getenv( 'CODEBOX_INPUT' ), true );
define( 'WP_ADMIN', true );
require '/wordpress/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
wp_set_current_user( 1 );
$codebox_plugin = trim( $codebox_input['plugin'], '/' );
if ( ! str_ends_with( $codebox_plugin, '.php' ) ) {
	$codebox_found  = array_keys( get_plugins( '/' . $codebox_plugin ) );
	$codebox_plugin = $codebox_found ? $codebox_plugin . '/' . $codebox_found[0] : $codebox_plugin;
}
$codebox_result = activate_plugin( $codebox_plugin );
if ( is_wp_error( $codebox_result ) ) {
	fwrite( fopen( 'php://stderr', 'wb' ), $codebox_result->get_error_message() . ' ' . wp_strip_all_tags( (string) $codebox_result->get_error_data() ) );
	exit( 1 );
}
exit( 0 );
