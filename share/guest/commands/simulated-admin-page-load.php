<?php
/**
 * Command `wordpress.simulated-admin-page-load`: renders a page of the admin area in this process as a
 * logged-in user and reports the result.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/simulation.php';

begin();
require simulate( 'admin' );
// A relative require in the page is relative to wp-admin.
chdir( ABSPATH . 'wp-admin' );
require admin_file( $_SERVER['REQUEST_URI'] );
exit;
