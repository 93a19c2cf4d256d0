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

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/server.php';

begin();
finish( static fn ( Arguments $arguments ): array => ( new Server() )->load( $arguments ) );
