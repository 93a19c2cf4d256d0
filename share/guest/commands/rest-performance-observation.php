<?php
/**
 * Command `wordpress.rest-performance-observation`: measures one REST request in this process: time, memory,
 * queries by kind, and the slowest hooks.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/observation.php';

begin();
$codebox_watch = observer();
require wordpress();
finish( static fn ( Arguments $arguments ): array => observe_performance( $arguments, $codebox_watch ) );
