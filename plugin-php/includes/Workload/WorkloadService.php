<?php
/**
 * Runs WordPress workloads in disposable sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use Throwable;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Host\Site;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Starts a sandbox, sends it the commands in order and ends it. After a failure only the phase `after` runs. A plugin of
 * the site may run workloads instead (filter `wp_codebox_wordpress_workload_runners`).
 */
final class WorkloadService {

	private const SCHEMA = 'wp-codebox/wordpress-workload-run-result/v1';

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate   $gate     Check that the PHP extension is loaded and its version fits.
	 * @param WorkloadRequest $requests Builds run requests.
	 * @param Site            $site     Site the plugin runs on.
	 * @param AuditTrail      $audit    Audit log that records each decision.
	 * @param SchemaStore     $schemas  Loader of the JSON schemas.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly WorkloadRequest $requests,
		private readonly Site $site,
		private readonly AuditTrail $audit,
		private readonly SchemaStore $schemas
	) {}

	/**
	 * Runs a workload.
	 *
	 * @param array<string, mixed> $input     Ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/wordpress-workload-run-result/v1`.
	 * @throws Failure When the input is invalid, or the sandbox does not start.
	 */
	public function run( array $input, Authority $authority ): array {
		$this->gate->check();
		if ( '' === trim( (string) ( $input['schema'] ?? '' ) ) ) {
			throw Failure::invalid_input( __( 'The workload has no "schema"; it must be wp-codebox/wordpress-workload-run/v1.', 'codebox' ), [], [ 'field' => 'schema' ] );
		}
		$other = WorkloadRunners::find( $input );
		if ( null !== $other ) {
			return $other->run( $input, $this->schemas );
		}
		$plan = WorkloadPlan::read( $input );
		if ( [] !== $plan->lacking ) {
			return $this->unsupported( $input, $plan );
		}
		return $this->execute( $input, $plan, $authority );
	}

	/**
	 * Runs the steps of a plan in a sandbox.
	 *
	 * @param array<string, mixed> $input     Workload.
	 * @param WorkloadPlan         $plan      Plan.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	public function execute( array $input, WorkloadPlan $plan, Authority $authority ): array {
		$files    = array_values( (array) ( $input['artifacts'] ?? [] ) );
		$commands = [] === $files ? $plan->commands : array_values( array_unique( [ ...$plan->commands, WorkloadFiles::COMMAND ] ) );
		/* translators: %d: number of steps. */
		$goal     = sprintf( _n( 'Run a WordPress workload of %d step.', 'Run a WordPress workload of %d steps.', count( $plan->steps ), 'codebox' ), count( $plan->steps ) );
		$request  = $this->requests->build( $input, $goal, $commands, $authority );
		if ( Authority::Operator === $authority && ( [] !== $request->host['mounts'] || isset( $request->host['staged_files'] ) ) ) {
			$this->audit->write( 'operator-mount', [ 'mounts' => array_merge( $request->host['mounts'], $request->host['staged_files'] ?? [] ) ] );
		}
		$sandbox = WorkloadSandbox::start( $this->site->id(), $request );
		unset( $request );
		try {
			[ $rows, $good ] = $this->steps( $plan, $sandbox );
			$collected       = new WorkloadFiles( $sandbox );
			$artifacts       = $sandbox->alive() ? $collected->collect( $files ) : [];
			$result          = $sandbox->end();
		} catch ( Throwable $thrown ) {
			$sandbox->abandon();
			throw $thrown;
		}
		$error = is_array( $result['error'] ?? null ) ? $result['error'] : [];
		$good  = $good && [] === $error && [] === $collected->missing;
		return [
			'success'     => $good,
			'schema'      => self::SCHEMA,
			'status'      => $good ? 'completed' : 'failed',
			'request'     => HostAnswer::filled( $input ),
			'steps'       => $rows,
			'artifacts'   => array_merge( $artifacts, $this->bundle( $result ) ),
			'diagnostics' => array_merge( $collected->missing, $this->notices( $result ) ),
			'run'         => [
				'runId'      => $sandbox->id(),
				'outcome'    => (string) ( $result['outcome'] ?? '' ),
				'summary'    => (string) ( $result['summary'] ?? '' ),
				'durationMs' => (int) ( $result['cost']['wall_ms'] ?? 0 ),
			],
		] + HostAnswer::filled(
			[
				'metadata' => (array) ( $input['metadata'] ?? [] ),
				'error'    => $good ? [] : $this->error( $rows, $collected->missing, $error ),
			]
		);
	}

	/**
	 * Returns the first error of a failed workload: of a step, of a missing file, or of the run.
	 *
	 * @param list<array<string, mixed>>  $rows    Rows of the steps.
	 * @param list<array<string, string>> $missing Diagnoses of missing files.
	 * @param array<string, mixed>        $run     Error of the run; empty without one.
	 * @return array<string, mixed>
	 */
	private function error( array $rows, array $missing, array $run ): array {
		foreach ( $rows as $row ) {
			if ( isset( $row['error'] ) && true !== ( $row['allowFailure'] ?? false ) && true !== ( $row['advisory'] ?? false ) ) {
				return array_intersect_key( $row['error'], array_flip( [ 'code', 'message', 'hints', 'data' ] ) );
			}
		}
		return [] !== $run ? $run : array_intersect_key( $missing[0] ?? [], array_flip( [ 'code', 'message' ] ) );
	}

	/**
	 * Runs the steps.
	 *
	 * @param WorkloadPlan    $plan    Plan.
	 * @param WorkloadSandbox $sandbox Sandbox.
	 * @return array{list<array<string, mixed>>, bool} Rows, and whether every step that must succeed did.
	 * @throws Failure When the sandbox did not start.
	 */
	private function steps( WorkloadPlan $plan, WorkloadSandbox $sandbox ): array {
		$rows = [];
		$good = true;
		$ran  = false;
		foreach ( $plan->steps as $step ) {
			if ( null !== $step->unsupported ) {
				$rows[] = $step->row( 'unsupported', [ 'error' => $step->unsupported->to_array() ] );
				continue;
			}
			if ( ! $good && ! $step->is_cleanup() || $ran && ! $sandbox->alive() ) {
				$rows[] = $step->row( 'skipped' );
				continue;
			}
			try {
				$row = $step->ran( $sandbox->command( $step->command, $step->args, $step->milliseconds ) );
			} catch ( Failure $failure ) {
				if ( ! $ran && ! $sandbox->alive() ) {
					throw $failure;
				}
				$row = $step->refused( $failure );
			}
			$ran    = true;
			$good   = $good && ( 'completed' === $row['status'] || $step->may_fail() );
			$rows[] = $row;
		}
		return [ $rows, $good ];
	}

	/**
	 * Returns the answer to a workload that the sandbox cannot run. Nothing has run.
	 *
	 * @param array<string, mixed> $input Workload.
	 * @param WorkloadPlan         $plan  Plan.
	 * @return array<string, mixed>
	 */
	private function unsupported( array $input, WorkloadPlan $plan ): array {
		return [
			'success'     => false,
			'schema'      => self::SCHEMA,
			'status'      => 'unsupported',
			'request'     => HostAnswer::filled( $input ),
			'steps'       => array_map( static fn( WorkloadStep $step ): array => null === $step->unsupported ? $step->row( 'skipped' ) : $step->row( 'unsupported', [ 'error' => $step->unsupported->to_array() ] ), $plan->steps ),
			'artifacts'   => [],
			'diagnostics' => $plan->lacking,
			'error'       => Failure::because(
				ErrorCode::tryFrom( $plan->lacking[0]['code'] ) ?? ErrorCode::WordpressWorkloadInputUnsupported,
				/* translators: %s: one sentence. */
				Sentence::of( __( 'Nothing ran. %s', 'codebox' ), $plan->lacking[0]['message'] ),
				[ __( 'Use the command "wp-codebox run-wordpress-workload" on this host, which supports more fields.', 'codebox' ) ]
			)->to_array(),
		] + HostAnswer::filled( [ 'metadata' => (array) ( $input['metadata'] ?? [] ) ] );
	}

	/**
	 * Returns the bundle of the run as a row of the artifacts.
	 *
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1`.
	 * @return list<array<string, string>>
	 */
	private function bundle( array $result ): array {
		if ( empty( $result['artifacts']['path'] ) ) {
			return [];
		}
		return [
			[
				'kind'           => 'artifact-bundle',
				'id'             => (string) ( $result['artifacts']['bundle_id'] ?? '' ),
				'directory'      => (string) $result['artifacts']['path'],
				'manifestSha256' => (string) ( $result['artifacts']['manifest_sha256'] ?? '' ),
			],
		];
	}

	/**
	 * Returns the notices of the run as diagnoses.
	 *
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1`.
	 * @return list<array<string, string>>
	 */
	private function notices( array $result ): array {
		return array_map(
			static fn( mixed $notice ): array => [
				'code'     => 'notice',
				'message'  => (string) $notice,
				'severity' => 'info',
			],
			array_values( array_filter( (array) ( $result['notices'] ?? [] ), 'is_string' ) )
		);
	}
}
