<?php
/**
 * Removes what the plugin stored in WordPress. Bundles and the audit log live in
 * the state directory of the host and stay: they may hold work nobody has applied yet.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

require_once __DIR__ . '/includes/Settings.php';

foreach ( Settings::ALL as $wp_codebox_option ) {
	delete_site_option( $wp_codebox_option );
}
