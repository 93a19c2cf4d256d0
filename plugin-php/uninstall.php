<?php
/**
 * Removes what the plugin stored in WordPress, on every site of a network: options, network
 * options, transients and user meta whose name starts with `wp_codebox_`. Bundles, runs and the
 * audit log live in the state directory of the host and stay: they may hold work nobody has
 * applied yet, and PHP may not be able to write there. The readme says where they are.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

require_once __DIR__ . '/includes/Uninstaller.php';

( new Uninstaller() )->run();
