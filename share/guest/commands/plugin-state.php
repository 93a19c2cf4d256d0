<?php
/**
 * Commands `wordpress.plugin-state` and `wordpress.ensure-plugin-active`: report and change whether a plugin
 * is installed and active.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/plugin-state.php';
require __DIR__ . '/lib/wordpress.php';

finish( plugin_state( ... ) );
