<?php
/**
 * Command `wordpress.collect-workload-result`: returns a JSON document written by a workload as a typed
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
