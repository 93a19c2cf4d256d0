<?php
/**
 * Command `wordpress.theme-check`: checks a theme with the plugin Theme Check, where its code is in
 * the guest. Findings of type REQUIRED fail the command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/theme-check.php';
require __DIR__ . '/lib/wordpress.php';

finish( theme_check( ... ) );
