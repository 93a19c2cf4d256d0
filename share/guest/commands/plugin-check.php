<?php
/**
 * Command `wordpress.plugin-check`: runs the checks of the plugin Plugin Check on a plugin, where
 * its code is in the guest. Findings of type ERROR fail the command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/plugin-check.php';
require __DIR__ . '/lib/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

finish( plugin_check( ... ) );
