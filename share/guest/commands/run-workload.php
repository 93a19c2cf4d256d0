<?php
/**
 * Command `wordpress.run-workload`: runs a file of the guest.
 *
 * A file of type `php` runs with WordPress loaded, like wordpress.run-php. One of type `json` is
 * a list of steps, {command, args, allowFailure?}, or {steps: […]}; each runs in a process of
 * its own, and the first that fails ends the workload.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/workload.php';

begin();
finish( workload( ... ) );
