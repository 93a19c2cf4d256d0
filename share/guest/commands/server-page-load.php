<?php
/**
 * Command `wordpress.server-page-load`: requests a page from a web server inside the guest and reports the
 * response.
 *
 * PHP's built-in web server is started for this one request, on the guest's loopback device. A static file is
 * served unchanged; every other request goes to WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/server.php';

begin();
finish( static fn ( Arguments $arguments ): array => ( new Server() )->load( $arguments ) );
