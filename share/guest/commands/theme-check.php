<?php
/**
 * Command `wordpress.theme-check`: checks a theme with the Theme Check plugin, if its code is in the guest.
 * Findings of type REQUIRED make the command fail.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/theme-check.php';
require __DIR__ . '/lib/wordpress.php';

finish( theme_check( ... ) );
