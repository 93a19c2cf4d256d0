<?php
/**
 * Removes the plugin's data from WordPress on every site of a network: options, network options, transients
 * and user meta whose names start with `wp_codebox_`. Bundles, run records and the audit log stay in the
 * host's state directory: bundles may hold changes that are not applied yet, and PHP may not have write
 * access there. The readme names the directory.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

require_once __DIR__ . '/includes/Autoload.php';

Autoload::register( __DIR__ );

( new Uninstaller() )->run();
