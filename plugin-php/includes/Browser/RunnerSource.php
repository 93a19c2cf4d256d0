<?php
/**
 * PHP source of the runner in a browser sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/**
 * The generated script runs a task inside PHP-WASM. Before it loads or registers anything, it checks that it runs there, by
 * facts that no configuration can set: `php_uname()`, the extension of the engine, ABSPATH. A constant is no proof.
 */
final class RunnerSource {

	/**
	 * Returns the script.
	 *
	 * @param array<string, mixed> $config Plan, principal and facts.
	 */
	public static function of( array $config ): string {
		$json = (string) wp_json_encode( $config, JSON_UNESCAPED_SLASHES );
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- writes PHP source that carries JSON.
		$config = base64_encode( $json );
		return str_replace(
			[ "\ndefined( 'ABSPATH' ) || exit;\n", '{{CONFIG}}' ],
			[ '', $config ],
			(string) file_get_contents( dirname( __DIR__, 2 ) . '/assets/browser-runner.php' )
		);
	}
}
