<?php
/**
 * Which program does the work.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Run;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * The task's own command line, else the agent it names, else the site's default.
 * The program runs in the guest; nothing here names a binary of the host.
 */
final class AgentChoice {

	/**
	 * Wires the choice.
	 *
	 * @param Settings $settings Host settings.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * The agent as the extension takes it.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array{argv: list<string>, success_codes: list<int>, env?: array<string, string>}
	 * @throws Failure `wp_codebox_agent_missing` or `wp_codebox_input_invalid`.
	 */
	public function resolve( array $input ): array {
		[ $command, $codes ] = $this->command( $input );

		$argv = Run::splitCommand( $command );
		if ( [] === $argv ) {
			throw $this->missing( 'The agent command is empty.' );
		}
		$agent = [
			'argv'          => $argv,
			'success_codes' => [] === $codes ? [ 0 ] : $codes,
		];
		if ( ! empty( $input['agent_env'] ) ) {
			$agent['env'] = (array) $input['agent_env'];
		}
		return $agent;
	}

	/**
	 * Command line and success codes.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array{string, list<int>}
	 */
	private function command( array $input ): array {
		$codes = array_values( array_map( 'intval', (array) ( $input['agent_success_codes'] ?? [] ) ) );
		if ( isset( $input['agent_command'], $input['agent'] ) ) {
			throw Failure::because( ErrorCode::InputInvalid, 'The task gives both agent and agent_command; give one of them.' );
		}
		if ( isset( $input['agent_command'] ) ) {
			return [ (string) $input['agent_command'], $codes ];
		}
		$agents = $this->settings->agents();
		$name   = isset( $input['agent'] ) ? (string) $input['agent'] : $this->settings->default_agent();
		if ( '' === $name ) {
			throw $this->missing( 'No agent was named and none is configured.' );
		}
		if ( ! isset( $agents[ $name ] ) ) {
			throw $this->missing( sprintf( 'There is no agent "%s" on this site; %s.', $name, [] === $agents ? 'none is configured' : 'configured are ' . implode( ', ', array_keys( $agents ) ) ) );
		}
		return [ $agents[ $name ]['command'], [] === $codes ? $agents[ $name ]['success_codes'] : $codes ];
	}

	/**
	 * The failure with its three ways out.
	 *
	 * @param string $sentence What is wrong.
	 */
	private function missing( string $sentence ): Failure {
		return Failure::because(
			ErrorCode::AgentMissing,
			$sentence,
			[
				'Give the program for this task: agent_command (in WP-CLI --agent-command=\'php agent.php\').',
				'Or name an agent from the option wp_codebox_agents: agent (in WP-CLI --agent=<name>).',
				'Or set a default: the option wp_codebox_default_agent, or the filter of the same name.',
			]
		);
	}
}
