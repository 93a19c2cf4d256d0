<?php
/**
 * Command `wordpress.inventory-database`: lists tables with columns, indexes and row counts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/inventories.php';
require __DIR__ . '/lib/tables.php';
require __DIR__ . '/lib/wordpress.php';

finish( static fn (): array => result( 'wordpress-db-inventory' ) + database_inventory() + array( 'diagnostics' => array() ) );
