<?php
/**
 * Command `wordpress.plugin-check`: checks a plugin with the Plugin Check plugin, if its code is in the
 * guest. Findings of type ERROR make the command fail.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/plugin-check.php';
require __DIR__ . '/lib/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

finish( plugin_check( ... ) );
