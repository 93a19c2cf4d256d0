<?php
/**
 * Command `wordpress.fuzz-admin-pages`: loads the screens of the admin menu as the first administrator, each in its
 * own process, and reports faults.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/fuzz-pages.php';
require __DIR__ . '/lib/admin-area.php';

finish( fuzz_admin_pages( ... ) );
