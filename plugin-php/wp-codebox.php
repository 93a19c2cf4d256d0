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

require_once __DIR__ . '/includes/Autoload.php';

Autoload::register( __DIR__ );
( new Plugin( __FILE__ ) )->boot();
