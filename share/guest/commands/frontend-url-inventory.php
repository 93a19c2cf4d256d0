<?php
/**
 * Command `wordpress.frontend-url-inventory`: lists the front-end URLs that WordPress knows, the
 * rewrite rules and the public query variables.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/inventories.php';
require __DIR__ . '/lib/addresses.php';
require __DIR__ . '/lib/wordpress.php';

finish( static fn (): array => result( 'wordpress-frontend-url-inventory' ) + frontend_inventory() + array( 'diagnostics' => array() ) );
