<?php
/**
 * Command `wordpress.simulated-admin-page-load`: makes a page of the admin area in this process,
 * as a user who is logged in, and says what became of it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/page.php';
require __DIR__ . '/lib/simulation.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\simulate( 'admin' );
// A relative require of the page's is meant from its directory.
chdir( ABSPATH . 'wp-admin' );
require WPCodebox\Guest\Command\admin_file( $_SERVER['REQUEST_URI'] );
exit;
