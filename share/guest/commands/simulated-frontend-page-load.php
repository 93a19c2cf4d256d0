<?php
/**
 * Command `wordpress.simulated-frontend-page-load`: renders a front-end page in this process without a web
 * server and reports the result.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/simulation.php';

begin();
require simulate( 'frontend' );
wp();
require ABSPATH . WPINC . '/template-loader.php';
exit;
