<?php
/**
 * Plugins of this site that run workloads.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use Closure;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\HostPlugin\HostProviders;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** A workload goes to the first registered runner that accepts it; if there is none, a sandbox of this host runs it. */
final class WorkloadRunners {

	/**
	 * Creates the runner.
	 *
	 * @param string  $id       Id of the runner.
	 * @param Closure $callback Runs the workload.
	 */
	private function __construct(
		private readonly string $id,
		private readonly Closure $callback
	) {}

	/**
	 * Returns the runner for a workload; null when the plugins of this site have none.
	 *
	 * @param array<string, mixed> $input Workload.
	 */
	public static function find( array $input ): ?self {
		$rows = HostAnswer::of(
			/**
			 * Registers runners of workloads. A runner must not run a workload in this WordPress.
			 *
			 * @param list<array{id: string, matches?: callable, callback: callable}> $providers Runners. `matches` gets the
			 *   workload and returns whether the runner takes it; without it, the runner takes every workload. `callback`
			 *   gets the workload and returns `wp-codebox/wordpress-workload-run-result/v1` or a `WP_Error`.
			 * @param array<string, mixed>                                            $input     Workload.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_wordpress_workload_runners', [], $input ),
			ErrorCode::WordpressWorkloadProviderInvalidResult,
			__( 'A plugin that registers runners of workloads threw an exception; the PHP error log says where.', 'codebox' )
		);
		$row  = HostProviders::first( $rows, $input, '', ErrorCode::WordpressWorkloadProviderInvalidResult );
		return null === $row ? null : new self( $row['id'], Closure::fromCallable( $row['callback'] ) );
	}

	/**
	 * Runs a workload.
	 *
	 * @param array<string, mixed> $input   Workload.
	 * @param SchemaStore          $schemas Loader of the JSON schemas, to check the answer.
	 * @return array<string, mixed> `wp-codebox/wordpress-workload-run-result/v1`.
	 * @throws Failure `wp_codebox_wordpress_workload_provider_invalid_result`, or the runner's own.
	 */
	public function run( array $input, SchemaStore $schemas ): array {
		$invalid = ErrorCode::WordpressWorkloadProviderInvalidResult;
		$answer  = HostAnswer::of( fn(): mixed => ( $this->callback )( $input ), $invalid, __( 'The plugin that runs workloads threw an exception; the PHP error log says where.', 'codebox' ) );
		$answer  = HostAnswer::document( $answer, $invalid, $invalid );
		if ( ! in_array( $answer['status'] ?? null, [ 'completed', 'failed', 'skipped', 'unsupported' ], true ) ) {
			throw Failure::because( $invalid, __( 'The plugin that runs workloads answered with an unknown status; it must be completed, failed, skipped or unsupported.', 'codebox' ) );
		}
		$result = [
			'success'  => 'completed' === $answer['status'] && false !== ( $answer['success'] ?? true ),
			'schema'   => 'wp-codebox/wordpress-workload-run-result/v1',
			'run'      => (array) ( $answer['run'] ?? [] ) + [ 'runner' => $this->id ],
		] + $answer + [
			'request'     => HostAnswer::filled( $input ),
			'steps'       => [],
			'artifacts'   => [],
			'diagnostics' => [],
		];
		$valid  = $schemas->check( 'wordpress-workload-run-result', $result, 'result' );
		if ( is_wp_error( $valid ) ) {
			/* translators: %s: what is wrong. */
			throw Failure::because( $invalid, Sentence::of( __( 'The plugin that runs workloads answered with invalid members: %s', 'codebox' ), $valid->get_error_message() ) );
		}
		return $result;
	}
}
