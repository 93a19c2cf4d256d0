<?php
/**
 * Command `wordpress.inventory-database`: lists tables with columns, indexes and row counts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/tables.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static fn (): array => array(
		'schema' => 'wp-codebox/wordpress-db-inventory/v1',
		'prefix' => $GLOBALS['wpdb']->prefix,
	) + listing( array_map( table_facts( ... ), table_names() ), array( 'name' ) )
);
