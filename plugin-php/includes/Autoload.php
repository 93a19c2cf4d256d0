<?php
/**
 * Class loading by name, without Composer.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Maps `WPCodebox\Cli\X` to `wp-cli/X.php`, every other `WPCodebox\A\B` to `includes/A/B.php`, and the one
 * global class `WP_Codebox_API` to its file. The extension defines `WPCodebox\Native\*`; the loader ignores
 * that namespace.
 */
final class Autoload {

	/**
	 * Registers the loader.
	 *
	 * @param string $root Directory of the plugin.
	 */
	public static function register( string $root ): void {
		spl_autoload_register(
			static function ( string $name ) use ( $root ): void {
				if ( 0 === strcasecmp( $name, 'WP_Codebox_API' ) ) {
					require_once $root . '/includes/WP_Codebox_API.php';
					return;
				}
				if ( ! str_starts_with( $name, __NAMESPACE__ . '\\' ) || str_starts_with( $name, __NAMESPACE__ . '\\Native\\' ) ) {
					return;
				}
				$rest = substr( $name, strlen( __NAMESPACE__ ) + 1 );
				$file = str_starts_with( $rest, 'Cli\\' )
					? $root . '/wp-cli/' . str_replace( '\\', '/', substr( $rest, 4 ) ) . '.php'
					: $root . '/includes/' . str_replace( '\\', '/', $rest ) . '.php';
				if ( is_file( $file ) ) {
					require_once $file;
				}
			}
		);
	}
}
