<?php
/**
 * Imports a MySQL dump of a recipe into the database of the guest's WordPress.
 *
 * Request: {name, version, file, reset: {strategy, tables}}. With the strategy `truncate-tables`, the tables that
 * `reset` lists are emptied first. The statements run through `$wpdb`; on SQLite, its drop-in translates
 * them. The options home and siteurl keep their values. Prints {name, version, statements, tables, truncated, kept};
 * exit status 1 when a statement failed, with its line.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/exit-guard.php';
require __DIR__ . '/sql-dump.php';

/** Maximum size of a dump, in bytes. */
const DUMP_BYTES = 64 * 1024 * 1024;

/**
 * Returns the names of all tables.
 *
 * @return list<string>
 */
function tables(): array {
	global $wpdb;
	return array_map( 'strval', (array) $wpdb->get_col( 'SHOW TABLES' ) );
}

/**
 * Runs one statement.
 *
 * @param string $sql   Statement.
 * @param string $place Where it stands, for the error message.
 * @throws \RuntimeException When the database refuses it.
 */
function run_statement( string $sql, string $place ): void {
	global $wpdb;
	$why = false === $wpdb->query( $sql ) || '' !== $wpdb->last_error ? $wpdb->last_error : null;
	if ( null !== $why ) {
		$why = trim( (string) preg_replace( '/\s+/', ' ', wp_strip_all_tags( $why ) ) );
		throw new \RuntimeException( sprintf( '%s: the database of the guest cannot run "%s": %s', $place, substr( (string) preg_replace( '/\s+/', ' ', $sql ), 0, 80 ), '' === $why ? 'it gave no reason' : substr( $why, 0, 300 ) ) );
	}
}

/**
 * Empties the listed tables that exist and imports the dump.
 *
 * @param array<string, mixed> $question Request.
 * @param string               $file     Dump.
 * @return array<string, mixed> Reply.
 * @throws \RuntimeException When the dump cannot be imported.
 */
function import_dump( array $question, string $file ): array {
	global $wpdb;
	if ( ! is_file( $file ) || filesize( $file ) > DUMP_BYTES ) {
		throw new \RuntimeException( sprintf( 'the dump is missing or larger than %d MiB', DUMP_BYTES / 1024 / 1024 ) );
	}
	$addresses = array_combine( array( 'home', 'siteurl' ), array( get_option( 'home' ), get_option( 'siteurl' ) ) );
	$emptied   = array();
	if ( 'truncate-tables' === $question['reset']['strategy'] ) {
		foreach ( array_intersect( $question['reset']['tables'], tables() ) as $table ) {
			run_statement( "DELETE FROM `$table`", "reset of $table" );
			$emptied[] = $table;
		}
	}
	$count = 0;
	$dump  = new Sql_Dump( (string) file_get_contents( $file ) );
	foreach ( $dump->statements() as $line => $statement ) {
		run_statement( $statement, "line $line" );
		++$count;
	}
	wp_cache_flush();
	$kept = array();
	foreach ( $addresses as $name => $value ) {
		if ( get_option( $name ) !== $value ) {
			update_option( $name, $value );
			$kept[] = $name;
		}
	}
	return array(
		'name'       => $question['name'],
		'version'    => $question['version'],
		'statements' => $count,
		'tables'     => count( tables() ),
		'truncated'  => $emptied,
		'kept'       => $kept,
	);
}

$wpdb->suppress_errors();
$codebox_doing = "the fixture database {$codebox_question['name']} was imported";
try {
	$codebox_answer = import_dump( $codebox_question, rtrim( dirname( ABSPATH ), '/' ) . $codebox_question['file'] );
} catch ( \RuntimeException $codebox_thrown ) {
	$codebox_doing = '';
	fwrite( STDERR, "the fixture database {$codebox_question['name']} was not imported: " . $codebox_thrown->getMessage() . "\n" );
	exit( 1 );
}
$codebox_doing = '';
echo wp_json_encode( $codebox_answer ), "\n";
