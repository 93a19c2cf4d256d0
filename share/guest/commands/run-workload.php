<?php
/**
 * Command `wordpress.run-workload`: runs a workload file of the guest.
 *
 * A file of type `php` runs with WordPress loaded, like wordpress.run-php. A file of type `json` is a list of
 * steps, {command, args, allowFailure?}, or {steps: […]}; each step runs in its own process, and the first
 * failed step ends the workload.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/workload.php';

begin();
finish( workload( ... ) );
