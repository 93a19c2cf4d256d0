<?php
/**
 * Command `wordpress.simulated-admin-page-load`: makes a page of the admin area in this process,
 * as a user who is logged in, and says what became of it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/simulation.php';

begin();
require simulate( 'admin' );
// A relative require of the page's is meant from its directory.
chdir( ABSPATH . 'wp-admin' );
require admin_file( $_SERVER['REQUEST_URI'] );
exit;
