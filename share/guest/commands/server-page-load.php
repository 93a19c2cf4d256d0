<?php
/**
 * Command `wordpress.server-page-load`: asks a web server inside the guest for a page and says
 * what it answered.
 *
 * PHP's own web server is started for this one request, on the guest's loopback device. A file
 * that is no program is served as it is; everything else is WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/page.php';
require __DIR__ . '/lib/server.php';

WPCodebox\Guest\Command\begin();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => ( new WPCodebox\Guest\Command\Server() )->load( $arguments ) );
