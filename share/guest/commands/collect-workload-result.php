<?php
/**
 * Command `wordpress.collect-workload-result`: a JSON document that a workload left, as a typed
 * artifact.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/workload.php';

begin();
finish( workload_result( ... ) );
