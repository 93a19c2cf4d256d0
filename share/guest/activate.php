<?php
/**
 * Activates one plugin or theme.
 *
 * Request: {kind: plugin|theme, name, answer}; the name is that of the plugin's main file below the plugins
 * directory, or of the theme's directory. Reply: {status: ready|failed, code, message, printed}. A plugin or
 * theme that ends PHP leaves no reply and stays inactive. What the code prints does not make it fail, as in
 * WordPress; `printed` says how many bytes it was.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

require __DIR__ . '/answer.php';

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
wp_set_current_user( 1 );

/**
 * Activates the plugin.
 *
 * @param string $file Main file below the plugins directory.
 * @return WP_Error|null Why the plugin is not active.
 */
function codebox_activate_plugin( string $file ): ?WP_Error {
	wp_clean_plugins_cache( false );
	$result = activate_plugin( $file );
	if ( is_wp_error( $result ) && 'unexpected_output' === $result->get_error_code() ) {
		echo $result->get_error_data();
	}
	if ( is_plugin_active( $file ) ) {
		return null;
	}
	return is_wp_error( $result ) ? $result : new WP_Error( 'inactive', 'WordPress did not activate the plugin' );
}

/**
 * Switches to the theme, after its functions.php has shown that it can be loaded.
 *
 * @param string $slug Directory below the themes directory.
 * @return WP_Error|null Why the theme is not active.
 */
function codebox_activate_theme( string $slug ): ?WP_Error {
	if ( get_option( 'stylesheet' ) === $slug ) {
		return null;
	}
	$theme = wp_get_theme( $slug );
	if ( is_wp_error( $theme->errors() ) ) {
		return $theme->errors();
	}
	$met = validate_theme_requirements( $slug );
	if ( is_wp_error( $met ) ) {
		return $met;
	}
	foreach ( array_unique( array( $theme->get_stylesheet_directory(), $theme->get_template_directory() ) ) as $directory ) {
		if ( is_file( $directory . '/functions.php' ) ) {
			include_once $directory . '/functions.php';
		}
	}
	switch_theme( $slug );
	return get_option( 'stylesheet' ) === $slug ? null : new WP_Error( 'inactive', 'WordPress did not switch to the theme' );
}

$codebox_printed = 0;
$codebox_failure = null;
ob_start();
try {
	$codebox_failure = 'theme' === $codebox_question['kind'] ? codebox_activate_theme( $codebox_question['name'] ) : codebox_activate_plugin( $codebox_question['name'] );
} catch ( Throwable $codebox_thrown ) {
	$codebox_failure = new WP_Error( 'thrown', WPCodebox\Guest\thrown_sentence( $codebox_thrown ) );
}
// Counts the levels down, because an output buffer that was created as non-removable stays open.
for ( $codebox_level = ob_get_level(); $codebox_level > 0; --$codebox_level ) {
	$codebox_text     = (string) @ob_get_clean();
	$codebox_printed += strlen( $codebox_text );
	fwrite( STDOUT, $codebox_text );
}

WPCodebox\Guest\answer(
	$codebox_question,
	array( 'printed' => $codebox_printed ) + ( null === $codebox_failure ? array( 'status' => 'ready' ) : array(
		'status'  => 'failed',
		'code'    => (string) $codebox_failure->get_error_code(),
		'message' => wp_strip_all_tags( $codebox_failure->get_error_message() ),
	) )
);
exit( null === $codebox_failure ? 0 : 1 );
