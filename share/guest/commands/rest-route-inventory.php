<?php
/**
 * Command `wordpress.rest-route-inventory`: lists the REST routes with methods and arguments.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/inventories.php';
require __DIR__ . '/lib/wordpress.php';

finish( static fn (): array => result( 'wordpress-rest-route-inventory' ) + rest_inventory() + array( 'diagnostics' => array() ) );
