<?php
/**
 * Chooses the agent of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Model\ModelChoice;
use WPCodebox\Native\Run;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Order: the task's own command line, an ability of the guest, the agent that the task names (one of this
 * site, a preset of the extension or the built-in one), the site's default, the built-in agent when a model
 * is available. A task cannot choose a program of the host.
 */
final class AgentChoice {

	/** Name of the built-in agent: the supervisor itself calls a model until the task is done. */
	public const BUILT_IN = 'built-in';

	/** Budget fields that only the built-in agent enforces. */
	private const BUDGET = [ 'turns', 'input_tokens', 'output_tokens' ];

	/**
	 * Creates the choice with its dependencies.
	 *
	 * @param Settings    $settings Settings of the host (plugin settings page and constants).
	 * @param ModelChoice $models   Chooses the model of a task.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly ModelChoice $models
	) {}

	/**
	 * Returns the agent of a task in the form of the run request.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed> For a program `argv` and `success_codes`, else `kind` with its fields.
	 * @throws Failure `wp_codebox_agent_missing`, `wp_codebox_input_invalid` or `wp_codebox_budget_invalid`.
	 */
	public function resolve( array $input ): array {
		if ( count( array_intersect_key( $input, array_flip( [ 'agent', 'agent_command', 'runtime_task' ] ) ) ) > 1 ) {
			throw Failure::invalid_input( __( 'The task has more than one of "agent", "agent_command" and "runtime_task"; give only one.', 'codebox' ) );
		}
		$agent = $this->chosen( $input );
		if ( 'model' === self::kind( $agent ) ) {
			return $this->plain( $agent, $input ) + $this->built_in( $input );
		}
		if ( isset( $input['max_turns'] ) || ! empty( $input['budget'] ) ) {
			throw Failure::invalid_input( __( '"max_turns" and "budget" work with the built-in agent only; leave them out, or set "agent" to "built-in".', 'codebox' ) );
		}
		if ( 'command' !== self::kind( $agent ) ) {
			return $this->plain( $agent, $input );
		}
		if ( ! empty( $input['agent_env'] ) ) {
			$agent['env'] = (array) $input['agent_env'];
		}
		return $agent;
	}

	/**
	 * Returns the kind of an agent: `command`, `preset`, `model` or `ability`.
	 *
	 * @param array<string, mixed> $agent Agent in the extension's form.
	 */
	public static function kind( array $agent ): string {
		return (string) ( $agent['kind'] ?? 'command' );
	}

	/**
	 * Returns the names of the predefined agents (presets) that the extension reports.
	 *
	 * @return list<string>
	 */
	public static function presets(): array {
		$rows  = ExtensionGate::info()['agents'] ?? [];
		$names = array_map( static fn( mixed $row ): mixed => is_array( $row ) ? $row['name'] ?? null : $row, is_array( $rows ) ? $rows : [] );
		return array_values( array_filter( $names, 'is_string' ) );
	}

	/**
	 * Returns the names that a task, or the setting of the default agent, may use.
	 *
	 * @param Settings $settings Settings of the host (plugin settings page and constants).
	 * @return list<string>
	 */
	public static function names( Settings $settings ): array {
		return array_values( array_unique( array_merge( array_map( 'strval', array_keys( $settings->agents() ) ), [ self::BUILT_IN ], self::presets() ) ) );
	}

	/**
	 * Returns the agent that the task or the settings choose, without environment, budget and instructions.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function chosen( array $input ): array {
		$codes = array_values( array_map( 'intval', (array) ( $input['agent_success_codes'] ?? [] ) ) );
		if ( isset( $input['runtime_task'] ) ) {
			return [ 'kind' => 'ability' ] + array_intersect_key( (array) $input['runtime_task'], array_flip( [ 'ability', 'input' ] ) );
		}
		if ( isset( $input['agent_command'] ) ) {
			return $this->program( (string) $input['agent_command'], $codes );
		}
		$agents = $this->settings->agents();
		$name   = (string) ( $input['agent'] ?? $this->settings->default_agent() );
		if ( isset( $agents[ $name ] ) ) {
			return $this->program( $agents[ $name ]['command'], [] === $codes ? $agents[ $name ]['success_codes'] : $codes );
		}
		if ( self::BUILT_IN === $name || '' === $name && $this->models->configured( $input ) ) {
			return [ 'kind' => 'model' ];
		}
		$presets = self::presets();
		if ( in_array( $name, $presets, true ) ) {
			return [
				'kind' => 'preset',
				'name' => $name,
			];
		}
		if ( '' === $name ) {
			throw $this->missing( __( 'No agent was named and none is configured, and there is no model for the built-in one.', 'codebox' ) );
		}
		/* translators: 1: name as given, 2: list of names. */
		throw $this->missing( Sentence::of( __( 'There is no agent "%1$s" on this site; available: %2$s.', 'codebox' ), $name, implode( ', ', self::names( $this->settings ) ) ) );
	}

	/**
	 * Returns an agent that is a program of the guest.
	 *
	 * @param string    $command Command line.
	 * @param list<int> $codes   Exit codes that mean success.
	 * @return array<string, mixed>
	 */
	private function program( string $command, array $codes ): array {
		$argv = Run::splitCommand( $command );
		if ( [] === $argv ) {
			throw $this->missing( __( 'The agent command is empty; give a program and its arguments.', 'codebox' ) );
		}
		return [
			'argv'          => $argv,
			'success_codes' => [] === $codes ? [ 0 ] : $codes,
		];
	}

	/**
	 * Returns an agent that is not a command line; fails when the task has fields that only a command line may have.
	 *
	 * @param array<string, mixed> $agent Agent as configured.
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed> Agent in the extension's form.
	 */
	private function plain( array $agent, array $input ): array {
		if ( ! empty( $input['agent_env'] ) || ! empty( $input['agent_success_codes'] ) ) {
			throw Failure::invalid_input( __( '"agent_env", "runtime_env" and "agent_success_codes" work only with an agent that is a command line; leave them out, or give "agent_command".', 'codebox' ) );
		}
		return $agent;
	}

	/**
	 * Returns budget and instructions of the built-in agent. The extension checks the ranges.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function built_in( array $input ): array {
		$asked  = (array) ( $input['budget'] ?? [] );
		$budget = array_intersect_key( $asked, array_flip( self::BUDGET ) );
		if ( isset( $input['max_turns'] ) ) {
			// Both values are upper bounds; the smaller one applies.
			$budget['turns'] = min( (int) $input['max_turns'], (int) ( $budget['turns'] ?? PHP_INT_MAX ) );
		}
		if ( isset( $asked['cost_usd'] ) ) {
			$micro = (int) round( (float) $asked['cost_usd'] * 1e6 );
			if ( $micro < 1 ) {
				throw Failure::because( ErrorCode::BudgetInvalid, __( '"budget.cost_usd" must be at least 0.000001 US dollars.', 'codebox' ) );
			}
			$budget['cost_microusd'] = $micro;
		}
		return array_filter(
			[
				'budget'       => $budget,
				'instructions' => $this->settings->instructions(),
			],
			static fn( mixed $value ): bool => [] !== $value && '' !== $value
		);
	}

	/**
	 * Builds the failure for a task whose agent is missing or unknown.
	 *
	 * @param string $sentence Error message.
	 */
	private function missing( string $sentence ): Failure {
		$presets = self::presets();
		return Failure::because(
			ErrorCode::AgentMissing,
			$sentence,
			[
				__( 'Use the built-in agent: name a model ("provider" and "model", in WP-CLI --provider=<id> --model=<name>), or set a default in the settings of Codebox.', 'codebox' ),
				/* translators: %s: list of names, or "none". */
				Sentence::of( __( 'Or name an agent from the option wp_codebox_agents or one of the presets (%s): set "agent" (in WP-CLI --agent=<name>); the option wp_codebox_default_agent, or the filter of the same name, sets a default.', 'codebox' ), [] === $presets ? __( 'none', 'codebox' ) : implode( ', ', $presets ) ),
				__( 'Or give the program for this task: set "agent_command" (in WP-CLI --agent-command=\'php agent.php\').', 'codebox' ),
			]
		);
	}
}
