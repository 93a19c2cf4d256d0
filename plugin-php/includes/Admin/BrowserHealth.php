<?php
/**
 * Site Health test of browser sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\BrowserHost;
use WPCodebox\Browser\RuntimeFiles;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Reports whether browser sandboxes can start and how their documents are isolated. A site that never installed the runtime
 * files does not use them, so their absence is only a recommendation.
 */
final class BrowserHealth {

	private const TEST = 'wp_codebox_browser';

	/**
	 * Creates the test with its dependencies.
	 *
	 * @param RuntimeFiles  $runtime Installed runtime files.
	 * @param BrowserFields $fields  Sentences about isolation.
	 * @param BrowserHost   $host    Host that the sandbox is loaded from.
	 */
	public function __construct(
		private readonly RuntimeFiles $runtime,
		private readonly BrowserFields $fields,
		private readonly BrowserHost $host
	) {}

	/** Registers the filter of Site Health tests. */
	public function register(): void {
		add_filter( 'site_status_tests', [ $this, 'tests' ] );
	}

	/**
	 * Adds the test.
	 *
	 * @param mixed $tests Tests collected so far.
	 */
	public function tests( mixed $tests ): mixed {
		if ( is_array( $tests ) ) {
			$tests['direct'][ self::TEST ] = [
				'label' => __( 'Codebox browser sandboxes', 'codebox' ),
				'test'  => [ $this, 'test' ],
			];
		}
		return $tests;
	}

	/**
	 * Runs the test.
	 *
	 * @return array<string, mixed>
	 */
	public function test(): array {
		try {
			$this->host->isolation();
			$this->runtime->engine->check();
			if ( '' === $this->host->outside() ) {
				$this->runtime->engine->url( 'remote.html' );
				$this->runtime->check();
				$this->runtime->url();
				ArchiveWriter::assert_available();
			}
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			return HealthResult::of( self::TEST, 'recommended', __( 'Codebox cannot open browser sandboxes', 'codebox' ), [ $failure->getMessage() ], $failure->hints );
		}
		return HealthResult::of( self::TEST, 'good', __( 'Codebox can open browser sandboxes', 'codebox' ), $this->fields->isolation() );
	}
}
