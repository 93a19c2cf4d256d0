<?php
/**
 * Plugin Name:       Codebox
 * Description:       Runs a coding agent against a plugin or theme in a disposable, kernel-isolated sandbox and hands back a reviewable change. The site itself is never touched by the run.
 * Version:           0.1.0
 * Requires at least: 6.9
 * Requires PHP:      8.2
 * Author:            Codebox contributors
 * License:           GPL-2.0-or-later
 * License URI:       https://www.gnu.org/licenses/gpl-2.0.html
 * Text Domain:       codebox
 * Domain Path:       /languages
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

const VERSION = '0.1.0';

/** Format of the plugin's options. Every change of an option that an earlier version of the plugin would misread raises it. */
const FORMAT = 1;

if ( PHP_VERSION_ID < 80200 ) {
	add_action(
		'admin_notices',
		static function (): void {
			printf(
				'<div class="notice notice-error"><p>%s</p></div>',
				/* translators: %s: PHP version in use. */
				esc_html( sprintf( __( 'Codebox needs PHP 8.2 or newer; this site runs PHP %s.', 'codebox' ), PHP_VERSION ) )
			);
		}
	);
	return;
}

// Without the option the format is 1.
$wp_codebox_format = (int) get_site_option( 'wp_codebox_format', 1 );
if ( $wp_codebox_format > FORMAT ) {
	add_action(
		'init',
		static function () use ( $wp_codebox_format ): void {
			/* translators: 1: format of the options, 2: newest format that the plugin reads, 3: version of the plugin. */
			$refusal = sprintf( __( 'Codebox does nothing: its options have the format %1$d, and this version reads formats up to %2$d. Install a version of Codebox newer than %3$s.', 'codebox' ), $wp_codebox_format, FORMAT, VERSION );
			if ( defined( 'WP_CLI' ) && \WP_CLI ) {
				\WP_CLI::warning( $refusal );
			}
			add_action(
				is_multisite() ? 'network_admin_notices' : 'admin_notices',
				static fn() => printf( '<div class="notice notice-error"><p>%s</p></div>', esc_html( $refusal ) )
			);
		}
	);
	return;
}

require_once __DIR__ . '/includes/Autoload.php';

Autoload::register( __DIR__ );
( new Plugin( __FILE__ ) )->boot();
