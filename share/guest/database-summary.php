<?php
/**
 * Summarises the database of the site, so that a later summary shows what an agent changed there.
 *
 * Prints {tables: {name: {rows, digest}}, options: {name: digest}}. A table with more than 5,000 rows has no
 * digest. Options that WordPress changes by itself are left out.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

// Loads the database and no plugin, which could end PHP.
define( 'SHORTINIT', true );
require __DIR__ . '/answer.php';

WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';

const CODEBOX_MOST_ROWS = 5000;

global $wpdb;
$codebox_tables = array();
foreach ( $wpdb->get_col( 'SHOW TABLES' ) as $codebox_table ) {
	$codebox_name = '`' . str_replace( '`', '``', $codebox_table ) . '`';
	// phpcs:ignore WordPress.DB.PreparedSQL -- The name is from the database and quoted.
	$codebox_row = array( 'rows' => (int) $wpdb->get_var( "SELECT COUNT(*) FROM $codebox_name" ) );
	if ( $codebox_row['rows'] <= CODEBOX_MOST_ROWS && $wpdb->options !== $codebox_table ) {
		// phpcs:ignore WordPress.DB.PreparedSQL -- As above.
		$codebox_rows = array_map( 'serialize', $wpdb->get_results( "SELECT * FROM $codebox_name", ARRAY_N ) );
		sort( $codebox_rows );
		$codebox_row['digest'] = md5( implode( "\n", $codebox_rows ) );
	}
	$codebox_tables[ $codebox_table ] = $codebox_row;
}
$codebox_options = array();
foreach ( $wpdb->get_results( "SELECT option_name, option_value FROM {$wpdb->options} LIMIT " . CODEBOX_MOST_ROWS ) as $codebox_option ) {
	if ( 1 !== preg_match( '/^(_site)?_transient_|^(cron|doing_cron|rewrite_rules|recovery_keys|recently_activated|auto_core_update_notified|can_compress_scripts)$/', $codebox_option->option_name ) ) {
		$codebox_options[ $codebox_option->option_name ] = md5( $codebox_option->option_value );
	}
}
echo json_encode(
	array(
		'tables'  => (object) $codebox_tables,
		'options' => (object) $codebox_options,
	),
	JSON_INVALID_UTF8_SUBSTITUTE
);
