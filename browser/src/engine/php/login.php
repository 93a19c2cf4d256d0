<?php
/** Logs a user in: the headers of this answer carry the cookies. Input: username. */

declare(strict_types=1);
$codebox_input = json_decode( (string) getenv( 'CODEBOX_INPUT' ), true );
require '/wordpress/wp-load.php';
$codebox_user = get_user_by( 'login', $codebox_input['username'] );
if ( ! $codebox_user ) {
	fwrite( fopen( 'php://stderr', 'wb' ), 'There is no user ' . $codebox_input['username'] );
	exit( 1 );
}
wp_set_current_user( $codebox_user->ID );
wp_set_auth_cookie( $codebox_user->ID, true );
exit( 0 );
