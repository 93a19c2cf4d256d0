<?php
/**
 * Site Health test of the host's isolation.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * Registers one asynchronous test: the supervisor starts a guest that probes its isolation, which takes a moment.
 * No page load waits for it; the browser requests it after the page has loaded, or WP-Cron runs it.
 */
final class IsolationHealth {

	/**
	 * Name of the test. It contains no underscore, because WordPress's script replaces only the first
	 * underscore by a dash in the name of the AJAX action.
	 */
	private const TEST = 'codebox-isolation';

	/**
	 * Transient with the last test result, for pages that do not wait for a test. The host determines the
	 * result, so all sites of a network share it.
	 */
	private const LAST = 'wp_codebox_isolation';

	/**
	 * Creates the test with its dependencies.
	 *
	 * @param ExtensionGate $gate Check that the PHP extension is loaded and its version fits.
	 */
	public function __construct( private readonly ExtensionGate $gate ) {}

	/** Registers the hooks. */
	public function register(): void {
		add_filter( 'site_status_tests', [ $this, 'tests' ] );
		add_action( 'wp_ajax_health-check-' . self::TEST, [ $this, 'answer' ] );
	}

	/**
	 * Adds the test. Without the extension no test is added; SiteHealth already reports the missing
	 * extension.
	 *
	 * @param mixed $tests Tests collected so far.
	 * @return mixed
	 */
	public function tests( mixed $tests ): mixed {
		if ( is_array( $tests ) && null === $this->gate->failure() ) {
			$tests['async']['wp_codebox_isolation'] = [
				'label'             => __( 'Codebox isolation', 'codebox' ),
				'test'              => self::TEST,
				'async_direct_test' => [ $this, 'isolation_test' ],
			];
		}
		return $tests;
	}

	/** Runs the isolation test and sends its result as the AJAX response. */
	public function answer(): void {
		check_ajax_referer( 'health-check-site-status' );
		if ( ! current_user_can( 'view_site_health_checks' ) ) {
			wp_send_json_error( null, 403 );
		}
		wp_send_json_success( $this->isolation_test() );
	}

	/**
	 * Runs the test.
	 *
	 * @return array<string, mixed>
	 */
	public function isolation_test(): array {
		try {
			$host = Extension::doctor();
			set_site_transient(
				self::LAST,
				[
					'level'  => (string) ( $host['level'] ?? 'none' ),
					'kernel' => php_uname( 'r' ),
					'at'     => time(),
				],
				2 * WEEK_IN_SECONDS
			);
			return $this->judge( $host );
		} catch ( Throwable $thrown ) {
			return HealthResult::failed( 'wp_codebox_isolation', __( 'Codebox could not test its isolation', 'codebox' ), Failure::from( $thrown ) );
		}
	}

	/**
	 * Returns the last stored result, if it was measured under the same kernel release as now.
	 *
	 * @return array{level: string, at: int}|null
	 */
	public static function last(): ?array {
		$seen = get_site_transient( self::LAST );
		if ( ! is_array( $seen ) || php_uname( 'r' ) !== ( $seen['kernel'] ?? '' ) || ! is_string( $seen['level'] ?? null ) || ! is_int( $seen['at'] ?? null ) ) {
			return null;
		}
		return [
			'level' => $seen['level'],
			'at'    => $seen['at'],
		];
	}

	/**
	 * Converts the supervisor's report to a Site Health result.
	 *
	 * @param array<string, mixed> $host `wp-codebox/doctor/v1`.
	 * @return array<string, mixed>
	 */
	private function judge( array $host ): array {
		$level  = (string) ( $host['level'] ?? 'none' );
		$report = (array) ( $host['isolation'] ?? [] );
		/* translators: 1: isolation level, 2: kernel release, 3: Landlock ABI. */
		$found = [ sprintf( __( 'Isolation level: %1$s. Kernel %2$s, Landlock ABI %3$d.', 'codebox' ), $level, (string) ( $report['kernel'] ?? '?' ), (int) ( $report['landlockAbi'] ?? 0 ) ) ];
		foreach ( (array) ( $report['axes'] ?? [] ) as $row ) {
			$row = (array) $row;
			if ( 'enforced' !== ( $row['enforced'] ?? '' ) ) {
				$found[] = sprintf( '%s: %s. %s', (string) ( $row['axis'] ?? '' ), (string) ( $row['enforced'] ?? '' ), (string) ( $row['evidence'] ?? '' ) );
			}
		}
		$fixes = [];
		foreach ( (array) ( $host['checks'] ?? [] ) as $check ) {
			$check = (array) $check;
			if ( 'ok' !== ( $check['status'] ?? '' ) && '' !== (string) ( $check['fix'] ?? '' ) ) {
				$fixes[] = (string) $check['fix'];
			}
		}
		$fixes = array_values( array_unique( $fixes ) );
		return match ( $level ) {
			'full'    => HealthResult::of( 'wp_codebox_isolation', 'good', __( 'Agents run fully isolated', 'codebox' ), $found, $fixes ),
			'reduced' => HealthResult::of( 'wp_codebox_isolation', 'recommended', __( 'Agents can only run with reduced isolation', 'codebox' ), $found, $fixes ),
			default   => HealthResult::of( 'wp_codebox_isolation', 'critical', __( 'This host cannot isolate agents, so no agent is run', 'codebox' ), $found, $fixes ),
		};
	}
}
