<?php
/**
 * Command `wordpress.inventory-database`: tables with columns, indexes and number of rows.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/tables.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static fn (): array => array(
		'schema' => 'wp-codebox/wordpress-db-inventory/v1',
		'prefix' => $GLOBALS['wpdb']->prefix,
	) + WPCodebox\Guest\Command\listing( array_map( WPCodebox\Guest\Command\table_facts( ... ), WPCodebox\Guest\Command\table_names() ), array( 'name' ) )
);
