<?php
/**
 * Command `wordpress.theme-setup`: lists, installs, activates or deletes themes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/themes.php';
require __DIR__ . '/lib/wordpress.php';

finish( theme_setup( ... ) );
