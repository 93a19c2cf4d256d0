<?php
/**
 * Describes the tables of the database.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/listing.php';

/**
 * Returns the sorted names of at most 500 tables.
 *
 * @return list<string>
 */
function table_names(): array {
	return array_slice( sorted_texts( $GLOBALS['wpdb']->get_col( 'SHOW TABLES' ) ), 0, 500 );
}

/**
 * Checks whether a table belongs to WordPress itself.
 *
 * @param string $table Name of the table.
 */
function is_core_table( string $table ): bool {
	return in_array( $table, array_values( $GLOBALS['wpdb']->tables( 'all' ) ), true );
}

/**
 * Describes a table: columns and indexes from the database's schema, and the number of rows.
 *
 * @param string $table Name of the table.
 * @return array<string,mixed>
 */
function table_facts( string $table ): array {
	global $wpdb;
	$columns = array();
	foreach ( array_slice( $wpdb->get_results( $wpdb->prepare( 'SHOW COLUMNS FROM %i', $table ), ARRAY_A ) ?: array(), 0, 200 ) as $row ) {
		$columns[] = array(
			'name'    => (string) $row['Field'],
			'type'    => (string) $row['Type'],
			'null'    => 'YES' === $row['Null'],
			'default' => is_string( $row['Default'] ) ? plain_text( $row['Default'], 500 ) : null,
		);
	}
	$indexes = array();
	foreach ( $wpdb->get_results( $wpdb->prepare( 'SHOW INDEX FROM %i', $table ), ARRAY_A ) ?: array() as $row ) {
		$name             = (string) $row['Key_name'];
		$indexes[ $name ] = $indexes[ $name ] ?? array(
			'name'    => $name,
			'unique'  => 0 === (int) $row['Non_unique'],
			'columns' => array(),
		);

		$indexes[ $name ]['columns'][ (int) $row['Seq_in_index'] ] = (string) $row['Column_name'];
	}
	foreach ( $indexes as &$index ) {
		ksort( $index['columns'] );
		$index['columns'] = array_values( $index['columns'] );
	}
	unset( $index );
	return array(
		'name'    => $table,
		'core'    => is_core_table( $table ),
		'rows'    => (int) $wpdb->get_var( $wpdb->prepare( 'SELECT COUNT(*) FROM %i', $table ) ),
		'columns' => $columns,
		'indexes' => listing( array_values( $indexes ), array( 'name' ), 100 )['items'],
	);
}
