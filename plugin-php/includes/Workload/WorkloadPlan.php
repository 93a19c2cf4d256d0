<?php
/**
 * The steps of a workload, checked before a sandbox starts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Native\Policy;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the phases of a workload in order. Marks a step as unsupported when the sandbox does not have its command. Lists
 * input fields that the sandbox of a workload cannot honour, such as `secret_env`, unless their value is empty.
 */
final class WorkloadPlan {

	private const PHASES = [ 'before', 'steps', 'after' ];

	/** Command that runs the agent of a recipe. */
	private const AGENT = 'wp-codebox.agent-sandbox-run';

	/** Maximum number of steps in all phases together. */
	private const MOST_STEPS = 100;

	/**
	 * Creates the plan.
	 *
	 * @param list<WorkloadStep>          $steps    Steps of all phases, in order.
	 * @param list<string>                $commands Commands that the policy of the sandbox must list.
	 * @param list<array<string, string>> $lacking  Diagnoses of what the sandbox does not have; with one nothing runs.
	 */
	private function __construct(
		public readonly array $steps,
		public readonly array $commands,
		public readonly array $lacking
	) {}

	/**
	 * Reads a workload.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @throws Failure `wp_codebox_wordpress_workload_steps_missing` or `wp_codebox_input_invalid`.
	 */
	public static function read( array $input ): self {
		HostAnswer::bounded( $input, ErrorCode::InputInvalid );
		if ( empty( $input['steps'] ) ) {
			throw Failure::because( ErrorCode::WordpressWorkloadStepsMissing, __( 'The workload has no "steps"; give at least one step with a "command".', 'codebox' ), [], [ 'field' => 'steps' ] );
		}
		$catalogue = self::catalogue();
		$steps     = [];
		$commands  = [];
		$lacking   = self::lacking( $input );
		foreach ( self::PHASES as $phase ) {
			foreach ( array_values( (array) ( $input[ $phase ] ?? [] ) ) as $index => $row ) {
				$step    = WorkloadStep::read( $phase, $index, (array) $row );
				$known   = $catalogue[ $step->command ] ?? null;
				$steps[] = $step;
				if ( null === $known || false === ( $known['supported'] ?? true ) ) {
					$step->unsupported = self::unsupported( $step, $known );
					if ( ! $step->may_fail() ) {
						$lacking[] = HostAnswer::diagnosis( ErrorCode::WordpressWorkloadStepUnsupported, $step->unsupported->getMessage(), sprintf( '%s[%d].command', $phase, $index ) );
					}
					continue;
				}
				array_push( $commands, $step->command, ...array_values( (array) ( $known['requiredCommands'] ?? [] ) ) );
			}
		}
		if ( count( $steps ) > self::MOST_STEPS ) {
			/* translators: %d: number of steps. */
			throw Failure::invalid_input( Sentence::of( __( 'The workload has more than %d steps in all phases together.', 'codebox' ), self::MOST_STEPS ), [], [ 'field' => 'steps' ] );
		}
		return new self( $steps, array_values( array_unique( $commands ) ), $lacking );
	}

	/**
	 * Returns the rows of the commands by id. Marks the command that runs an agent as unsupported: it works in recipes only,
	 * because the sandbox of a workload has no agent.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private static function catalogue(): array {
		$rows = array_column( (array) Policy::commands()['commands'], null, 'id' );
		$rows[ self::AGENT ] = [
			'supported'         => false,
			'unsupportedReason' => __( 'this site runs workloads without an agent; use the command line `wp-codebox run-wordpress-workload` or `wp-codebox agent-sandbox-run`', 'codebox' ),
		] + ( $rows[ self::AGENT ] ?? [] );
		return $rows;
	}

	/**
	 * Returns a diagnosis for each field that the sandbox cannot honour.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return list<array<string, string>>
	 */
	private static function lacking( array $input ): array {
		$reasons = [
			'blueprint'              => __( 'A workload runs no blueprint; write its steps as commands in the field "before".', 'codebox' ),
			'post_runtime_blueprint' => __( 'A workload runs no blueprint; write its steps as commands in the field "before".', 'codebox' ),
			'preview'                => __( 'The sandbox of a workload has no preview; use a sandbox that stays up (wp-codebox sandbox create).', 'codebox' ),
			'runtime_stack_mounts'   => __( 'Files of WordPress and PHP in the sandbox cannot be replaced; use "mounts" for other code.', 'codebox' ),
			'runtime_overlays'       => __( 'The sandbox of a workload has no overlays; use "mounts" for code.', 'codebox' ),
			'runtime_env'            => __( 'Commands of a workload get no environment variables; pass values as arguments.', 'codebox' ),
			'secret_env'             => __( 'Commands of a workload get no secrets; use run-agent-task, which passes a secret to named hosts only.', 'codebox' ),
		];
		$lacking = [];
		foreach ( $reasons as $field => $reason ) {
			$value = (array) ( $input[ $field ] ?? [] );
			$value = str_contains( $field, 'blueprint' ) ? array_diff_key( HostAnswer::filled( $value ), [ '$schema' => 1 ] ) : $value;
			if ( [] !== $value ) {
				$lacking[] = HostAnswer::diagnosis( ErrorCode::WordpressWorkloadInputUnsupported, $reason, $field );
			}
		}
		$version = trim( (string) ( $input['wordpress_version'] ?? '' ) );
		$own     = (string) get_bloginfo( 'version' );
		if ( '' !== $version && $version !== $own && ! str_starts_with( $own, $version . '.' ) ) {
			/* translators: 1: version of WordPress, 2: version that was asked for. */
			$lacking[] = HostAnswer::diagnosis( ErrorCode::WordpressWorkloadInputUnsupported, Sentence::of( __( 'The sandbox has this site\'s WordPress %1$s, not %2$s; leave "wordpress_version" out.', 'codebox' ), $own, sanitize_text_field( $version ) ), 'wordpress_version' );
		}
		return $lacking;
	}

	/**
	 * Builds the error of a step whose command the sandbox does not have.
	 *
	 * @param WorkloadStep              $step  Step.
	 * @param array<string, mixed>|null $known Row of the catalogue; null for an unknown command.
	 */
	private static function unsupported( WorkloadStep $step, ?array $known ): Failure {
		$reason = is_string( $known['unsupportedReason'] ?? null ) ? $known['unsupportedReason'] : __( 'there is no such command', 'codebox' );
		return Failure::because(
			ErrorCode::WordpressWorkloadStepUnsupported,
			/* translators: 1: name of a command, 2: why the sandbox does not have it. */
			Sentence::of( __( 'The sandbox cannot run the command "%1$s": %2$s.', 'codebox' ), sanitize_text_field( $step->command ), rtrim( $reason, '.' ) ),
			[ __( 'List the commands with: wp codebox commands.', 'codebox' ) ]
		);
	}
}
