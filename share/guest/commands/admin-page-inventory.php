<?php
/**
 * Command `wordpress.admin-page-inventory`: lists the pages of the admin menu that the administrator sees.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/admin-pages.php';
require __DIR__ . '/lib/inventories.php';
require __DIR__ . '/lib/admin-area.php';

finish( static fn (): array => result( 'wordpress-admin-page-inventory' ) + admin_inventory() + array( 'diagnostics' => array() ) );
