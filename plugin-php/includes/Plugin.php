<?php
/**
 * Composition root.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Abilities\Registrar;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Admin\IsolationHealth;
use WPCodebox\Admin\Notices;
use WPCodebox\Admin\Privacy;
use WPCodebox\Admin\SiteHealth;

defined( 'ABSPATH' ) || exit;

/**
 * Wires services to WordPress's hooks. Loading the plugin never needs the extension.
 */
final class Plugin {

	/**
	 * Wires the plugin.
	 *
	 * @param string $file Main file of the plugin.
	 */
	public function __construct( private readonly string $file ) {}

	/** Registers everything. */
	public function boot(): void {
		$root         = dirname( $this->file );
		$manifest     = require $root . '/abilities/manifest.php';
		$gate         = new ExtensionGate( VERSION, $manifest['contract_digest'] );
		$schemas      = new SchemaStore( $root . '/abilities/schemas' );
		$services     = static function () use ( $gate, $schemas ): Services {
			static $wired = null;
			return $wired ??= new Services( $gate, $schemas );
		};
		$capabilities = new Capabilities();

		$capabilities->register();
		( new Registrar( $root . '/abilities', $schemas, $capabilities, $services ) )->register();
		( new Notices( $gate ) )->register();
		( new SiteHealth( $gate ) )->register();
		( new IsolationHealth( $gate ) )->register();
		( new Privacy() )->register();

		if ( defined( 'WP_CLI' ) && \WP_CLI ) {
			( new Cli\Registration( $services(), $capabilities, $schemas ) )->register();
		}
	}
}
