<?php
/**
 * Command `wordpress.plugin-setup`: lists, installs, activates, deactivates or deletes plugins.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/plugin-setup.php';
require __DIR__ . '/lib/wordpress.php';

finish( plugin_setup( ... ) );
