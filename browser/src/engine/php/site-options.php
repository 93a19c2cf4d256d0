<?php
/** Sets options of the site. Input: options, values by name. */

declare(strict_types=1);
$codebox_input = json_decode( (string) getenv( 'CODEBOX_INPUT' ), true );
require '/wordpress/wp-load.php';
foreach ( $codebox_input['options'] as $codebox_name => $codebox_value ) {
	update_option( $codebox_name, $codebox_value );
}
exit( 0 );
