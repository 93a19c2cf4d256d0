<?php
/** Activates a theme. Input: theme, the name of its directory. */

declare(strict_types=1);
$codebox_input = json_decode( (string) getenv( 'CODEBOX_INPUT' ), true );
define( 'WP_ADMIN', true );
require '/wordpress/wp-load.php';
$codebox_theme = wp_get_theme( $codebox_input['theme'] );
if ( ! $codebox_theme->exists() || $codebox_theme->errors() ) {
	$codebox_errors = $codebox_theme->errors();
	fwrite( fopen( 'php://stderr', 'wb' ), $codebox_errors ? $codebox_errors->get_error_message() : 'There is no theme ' . $codebox_input['theme'] );
	exit( 1 );
}
switch_theme( $codebox_theme->get_stylesheet() );
exit( 0 );
