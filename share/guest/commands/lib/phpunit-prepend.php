<?php
/**
 * Runs before PHPUnit in the global scope and loads the test environment.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

$codebox_plan = json_decode( (string) file_get_contents( (string) getenv( 'CODEBOX_PHPUNIT_PLAN' ) ), true );
putenv( 'CODEBOX_PHPUNIT_PLAN' );
foreach ( $codebox_plan['defines'] as $codebox_name => $codebox_value ) {
	defined( $codebox_name ) || define( $codebox_name, $codebox_value );
}
foreach ( $codebox_plan['server'] as $codebox_name => $codebox_value ) {
	$_SERVER[ $codebox_name ] = $codebox_value;
}
// The bootstrap file of WordPress's test library activates these plugins.
if ( ! empty( $codebox_plan['plugins'] ) ) {
	$GLOBALS['wp_tests_options'] = array( 'active_plugins' => $codebox_plan['plugins'] );
}
foreach ( $codebox_plan['files'] as $codebox_file ) {
	require_once $codebox_file;
}
unset( $codebox_plan, $codebox_name, $codebox_value, $codebox_file );
