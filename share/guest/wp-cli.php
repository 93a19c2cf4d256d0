<?php
/**
 * Makes WP-CLI fail where it would print a wrong result in a sandbox. `wp` of the guest requires this file.
 *
 * Commands of `wp db` that need a MySQL server fail with a reason while the database is SQLite.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Cli;

use WP_CLI;

/**
 * Commands that run programs of MySQL, or ask MySQL for what the SQLite drop-in does not know (`size`).
 */
const NEEDS_MYSQL = array( 'check', 'cli', 'create', 'drop', 'export', 'import', 'optimize', 'query', 'repair', 'reset', 'size' );

/**
 * Ends a command that needs MySQL if the database of this WordPress is SQLite.
 *
 * @param string $command Command, such as `db query`.
 */
function refuse_on_sqlite( string $command ): void {
	$drop_in = ( defined( 'WP_CONTENT_DIR' ) ? WP_CONTENT_DIR : ABSPATH . 'wp-content' ) . '/db.php';
	if ( ! is_file( $drop_in ) || ! str_contains( (string) file_get_contents( $drop_in ), 'SQLITE_DB_DROPIN_VERSION' ) ) {
		return;
	}
	$instead = 'db query' === $command ? ', or use $wpdb: wp eval \'global $wpdb; print_r( $wpdb->get_results( "SELECT ..." ) );\'' : '';
	WP_CLI::error( "the database of this sandbox is SQLite, and `wp $command` works with MySQL only: start the sandbox with MariaDB (option --service mysql)$instead" );
}

foreach ( NEEDS_MYSQL as $command ) {
	WP_CLI::add_hook( "before_invoke:db $command", __NAMESPACE__ . '\\refuse_on_sqlite' );
}
