<?php
/**
 * Runs fuzz suites in disposable sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Each case is one command of a workload; all cases of a suite run in order in the same sandbox. The mode
 * `php-in-process` would run the cases in this WordPress, so it is not supported, and neither is coverage.
 */
final class FuzzSuites {

	private const SCHEMA   = 'wp-codebox/fuzz-suite-result/v1';
	private const STATUSES = [ 'passed', 'failed', 'error', 'skipped', 'unsupported' ];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate   $gate      Check that the PHP extension is loaded and its version fits.
	 * @param WorkloadService $workloads Runs workloads.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly WorkloadService $workloads
	) {}

	/**
	 * Runs a suite.
	 *
	 * @param array<string, mixed> $input     Ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/fuzz-suite-result/v1`.
	 * @throws Failure When the suite is invalid, or the sandbox does not start.
	 */
	public function run( array $input, Authority $authority ): array {
		$this->gate->check();
		$cases  = $this->cases( $input );
		$reason = $this->unavailable( $input );
		if ( null !== $reason ) {
			return $this->envelope( $input, array_map( static fn( FuzzCase $case ): array => $case->row( 'unsupported' ), $cases ), [ $reason ], [] );
		}
		$steps = [];
		foreach ( $cases as $index => $case ) {
			if ( null !== $case->call ) {
				$steps[ $index ] = $case->call + [ 'allowFailure' => true ];
			}
		}
		$plan = [] === $steps ? null : WorkloadPlan::read( [ 'steps' => array_values( $steps ) ] );
		$done = null === $plan || [] === $plan->commands ? [
			'steps'       => null === $plan ? [] : array_map( static fn( WorkloadStep $step ): array => $step->row( 'unsupported', [ 'error' => (array) $step->unsupported?->to_array() ] ), $plan->steps ),
			'artifacts'   => [],
			'diagnostics' => [],
		] : $this->workloads->execute( [ 'metadata' => [ 'fuzz_suite' => $input['id'] ] ], $plan, $authority );
		$rows = [];
		foreach ( array_keys( $steps ) as $position => $index ) {
			$rows[ $index ] = $cases[ $index ]->of_step( $done['steps'][ $position ] );
		}
		foreach ( array_diff_key( $cases, $steps ) as $index => $case ) {
			$rows[ $index ] = $case->row( 'unsupported', [ 'error' => $case->unsupported() ] );
		}
		ksort( $rows );
		return $this->envelope( $input, array_values( $rows ), $done['diagnostics'], $done['artifacts'] );
	}

	/**
	 * Reads the cases.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return list<FuzzCase>
	 * @throws Failure `wp_codebox_fuzz_case_invalid` or `wp_codebox_input_invalid`.
	 */
	private function cases( array $input ): array {
		HostAnswer::bounded( $input, ErrorCode::InputInvalid );
		foreach ( [ 'schema', 'id' ] as $field ) {
			if ( '' === trim( (string) ( $input[ $field ] ?? '' ) ) ) {
				/* translators: %s: name of a field. */
				throw Failure::invalid_input( Sentence::of( __( 'The suite needs "%s".', 'codebox' ), $field ), [], [ 'field' => $field ] );
			}
		}
		if ( empty( $input['cases'] ) ) {
			throw Failure::because( ErrorCode::FuzzCaseInvalid, __( 'The suite has no "cases"; give at least one case with an "id".', 'codebox' ), [], [ 'field' => 'cases' ] );
		}
		$cases = array_map( static fn( mixed $row ): FuzzCase => FuzzCase::read( (array) $row, (array) ( $input['target'] ?? [] ) ), array_values( $input['cases'] ) );
		$ids   = array_map( static fn( FuzzCase $case ): string => $case->id, $cases );
		if ( in_array( '', $ids, true ) || count( array_unique( $ids ) ) !== count( $ids ) ) {
			throw Failure::because( ErrorCode::FuzzCaseInvalid, __( 'Each case must have an "id" that no other case of the suite has.', 'codebox' ), [], [ 'field' => 'cases' ] );
		}
		return $cases;
	}

	/**
	 * Returns why this site cannot run the suite at all; null when it can.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, string>|null
	 */
	private function unavailable( array $input ): ?array {
		$modes = array_unique( array_filter( [ $input['runnerMode'] ?? '', $input['runner_mode'] ?? '' ] ) );
		if ( count( $modes ) > 1 ) {
			throw Failure::invalid_input( __( '"runnerMode" and "runner_mode" have different values; give only one of these fields.', 'codebox' ), [], [ 'field' => 'runnerMode' ] );
		}
		if ( [ 'php-in-process' ] === array_values( $modes ) ) {
			return HostAnswer::diagnosis( ErrorCode::FuzzSuiteRunnerModeUnavailable, __( 'The runner mode php-in-process is not available, because it would run the cases in this site; use runtime-backed, which runs them in a sandbox.', 'codebox' ), 'runnerMode' );
		}
		if ( ! empty( $input['requireCoverage'] ) || ! empty( $input['require_coverage'] ) ) {
			return HostAnswer::diagnosis( ErrorCode::FuzzSuiteRunnerModeUnavailable, __( 'The sandbox measures no code coverage; leave "requireCoverage" out.', 'codebox' ), 'requireCoverage' );
		}
		return null;
	}

	/**
	 * Builds the answer.
	 *
	 * @param array<string, mixed>        $input       Ability input.
	 * @param list<array<string, mixed>>  $rows        Rows of the cases.
	 * @param list<array<string, string>> $diagnostics Diagnoses.
	 * @param list<array<string, mixed>>  $artifacts   Artifacts.
	 * @return array<string, mixed>
	 */
	private function envelope( array $input, array $rows, array $diagnostics, array $artifacts ): array {
		$counts = array_count_values( array_column( $rows, 'status' ) );
		$status = 'passed';
		foreach ( [ 'skipped', 'unsupported', 'error', 'failed' ] as $worse ) {
			$status = isset( $counts[ $worse ] ) ? $worse : $status;
		}
		$summary = [ 'total' => count( $rows ) ];
		foreach ( self::STATUSES as $name ) {
			$summary[ $name ] = $counts[ $name ] ?? 0;
		}
		return [
			'success'      => 'passed' === $status,
			'schema'       => self::SCHEMA,
			'status'       => $status,
			'suite'        => HostAnswer::filled( array_intersect_key( $input, array_flip( [ 'schema', 'id', 'version', 'target' ] ) ) ),
			'summary'      => $summary,
			'cases'        => $rows,
			'diagnostics'  => $diagnostics,
			'artifactRefs' => $artifacts,
		] + HostAnswer::filled( array_intersect_key( $input, array_flip( [ 'coveragePlan', 'metadata' ] ) ) );
	}
}
