<?php
/**
 * Command `wordpress.rest-performance-observation`: measures one request to the REST API in this
 * process: time, memory, queries by kind, and the hooks that took longest.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/rest.php';
require __DIR__ . '/lib/watch.php';
require __DIR__ . '/lib/hook-times.php';
require __DIR__ . '/lib/observation.php';

WPCodebox\Guest\Command\begin();
$codebox_watch = WPCodebox\Guest\Command\observer();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\observe_performance( $arguments, $codebox_watch ) );
