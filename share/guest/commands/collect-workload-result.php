<?php
/**
 * Command `wordpress.collect-workload-result`: a JSON document that a workload left, as a typed
 * artifact.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/workload.php';

WPCodebox\Guest\Command\begin();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\workload_result( $arguments ) );
