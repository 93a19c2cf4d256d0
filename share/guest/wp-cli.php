<?php
/**
 * Makes WP-CLI fail where it would print a wrong result in a sandbox. `wp` of the guest requires this file.
 *
 * - A denied check for updates: WordPress then has an empty list, of which WP-CLI says "up to date".
 * - Commands of `wp db` that need a MySQL server, while the database is SQLite.
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
 * Checks whether the command reports or installs updates.
 */
function is_about_updates(): bool {
	$words = WP_CLI::get_runner()->arguments;
	$verb  = $words[ 'language' === ( $words[0] ?? '' ) ? 2 : 1 ] ?? '';
	return in_array( $words[0] ?? '', array( 'core', 'plugin', 'theme', 'language' ), true ) && in_array( $verb, array( 'check-update', 'update' ), true );
}

/**
 * Ends a command about updates whose check for updates was denied; warns in other commands that print a list with updates.
 *
 * @param string $message What stopped the request.
 * @param string $url     Requested URL.
 */
function report_denied_check( string $message, string $url ): void {
	static $warned = false;
	$is_check = 1 === preg_match( '#/(?:core/version-check|(?:plugins|themes)/update-check)/#', $url );
	// WordPress also checks after it has installed something, which is no failure of that.
	if ( ! $is_check || doing_action( 'upgrader_process_complete' ) ) {
		return;
	}
	if ( is_about_updates() ) {
		WP_CLI::error( "it is unknown whether there are updates: $message" );
	}
	$flags = WP_CLI::get_runner()->assoc_args;
	$shown = in_array( $flags['format'] ?? '', array( 'count', 'ids' ), true ) ? '' : (string) ( $flags['fields'] ?? $flags['field'] ?? 'update' );
	if ( ! $warned && str_contains( $shown, 'update' ) ) {
		$warned = true;
		WP_CLI::warning( "it is unknown whether there are updates: $message" );
	}
}

/**
 * Lets commands about updates check again: WordPress repeats no check for a minute to twelve hours, also none that failed.
 *
 * @param mixed $updates Result of the last check.
 * @return mixed Result that WordPress takes for old.
 */
function forget_time_of_check( $updates ) {
	if ( is_object( $updates ) && is_about_updates() ) {
		$updates->last_checked = 0;
	}
	return $updates;
}

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
foreach ( array( 'core', 'plugins', 'themes' ) as $kind ) {
	WP_CLI::add_wp_hook( "site_transient_update_$kind", __NAMESPACE__ . '\\forget_time_of_check' );
}
WP_CLI::add_wp_hook( 'wp_codebox_request_denied', __NAMESPACE__ . '\\report_denied_check', 10, 2 );
