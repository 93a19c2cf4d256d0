<?php
/**
 * Site Health tests that start no process.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * Registers three direct tests: whether the extension is loaded and fits, whether it can use the state
 * directory, and which isolation level was measured last. None starts a process; IsolationHealth measures
 * again.
 */
final class SiteHealth {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param ExtensionGate $gate Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site Site the plugin runs on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site
	) {}

	/** Registers the filter of Site Health tests. */
	public function register(): void {
		add_filter( 'site_status_tests', [ $this, 'tests' ] );
	}

	/**
	 * Adds the tests. Without the extension only its own test is added.
	 *
	 * @param mixed $tests Tests collected so far.
	 * @return mixed
	 */
	public function tests( mixed $tests ): mixed {
		if ( ! is_array( $tests ) ) {
			return $tests;
		}
		$tests['direct']['wp_codebox_extension'] = [
			'label' => __( 'Codebox extension', 'codebox' ),
			'test'  => [ $this, 'extension_test' ],
		];
		$failure = $this->gate->failure();
		if ( null === $failure || ErrorCode::StateDirInvalid->value === $failure->error_code ) {
			$tests['direct']['wp_codebox_state'] = [
				'label' => __( 'Codebox state directory', 'codebox' ),
				'test'  => [ $this, 'state_test' ],
			];
		}
		if ( null === $failure ) {
			$tests['direct']['wp_codebox_level'] = [
				'label' => __( 'Codebox isolation level', 'codebox' ),
				'test'  => [ $this, 'level_test' ],
			];
		}
		return $tests;
	}

	/**
	 * Tests whether the extension is loaded and its version fits.
	 *
	 * @return array<string, mixed>
	 */
	public function extension_test(): array {
		$failure = $this->gate->failure();
		if ( null !== $failure ) {
			return HealthResult::failed( 'wp_codebox_extension', __( 'Codebox cannot run', 'codebox' ), $failure );
		}
		return HealthResult::of(
			'wp_codebox_extension',
			'good',
			__( 'The Codebox extension is loaded and has the version that the plugin needs', 'codebox' ),
			[ __( 'Agents can be run in a sandbox. The command "wp codebox doctor" shows how strongly this host isolates them.', 'codebox' ) ]
		);
	}

	/**
	 * Tests whether the extension can use the state directory.
	 *
	 * @return array<string, mixed>
	 */
	public function state_test(): array {
		try {
			$this->gate->check();
			Artifacts::list( $this->site->id() );
		} catch ( Throwable $thrown ) {
			return HealthResult::failed( 'wp_codebox_state', __( 'Codebox cannot use its state directory', 'codebox' ), Failure::from( $thrown ) );
		}
		return HealthResult::of(
			'wp_codebox_state',
			'good',
			__( 'Codebox can use its state directory', 'codebox' ),
			[ __( 'Runs, bundles and the audit log of this site can be read in the state directory.', 'codebox' ) ]
		);
	}

	/**
	 * Reports the isolation level that the last measurement found.
	 *
	 * @return array<string, mixed>
	 */
	public function level_test(): array {
		$last = IsolationHealth::last();
		if ( null === $last ) {
			return HealthResult::of(
				'wp_codebox_level',
				'recommended',
				__( 'It is not known yet how strongly agents are isolated', 'codebox' ),
				[ __( 'No recent test result for the running kernel is stored.', 'codebox' ) ],
				[ __( 'The test runs while this page is open; load the page again in a minute.', 'codebox' ) ]
			);
		}
		[ $status, $label ] = match ( $last['level'] ) {
			'full'    => [ 'good', __( 'Agents were fully isolated when the host was last tested', 'codebox' ) ],
			'reduced' => [ 'recommended', __( 'Agents could only run with reduced isolation when the host was last tested', 'codebox' ) ],
			default   => [ 'critical', __( 'This host could not isolate agents when it was last tested', 'codebox' ) ],
		};
		/* translators: 1: isolation level, 2: date and time. */
		return HealthResult::of( 'wp_codebox_level', $status, $label, [ sprintf( __( 'Isolation level %1$s, tested %2$s. The isolation is tested again before each run.', 'codebox' ), $last['level'], wp_date( 'Y-m-d H:i', $last['at'] ) ) ] );
	}
}
