<?php
/**
 * Runtime policy of the stand-in extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Policy {

	public static function defaults( array $commands = [] ): array {
		return [
			'network'    => 'deny',
			'filesystem' => 'readwrite-mounts',
			'commands'   => $commands,
			'secrets'    => 'none',
			'approvals'  => 'never',
		];
	}

	public static function validate( array $policy ): array {
		$issues = [];
		// The stand-in supports only the network preset for a model.
		if ( 'deny' !== ( $policy['network'] ?? null ) && [ 'presets' => [ 'model' ] ] !== ( $policy['network'] ?? null ) ) {
			$issues[] = [
				'code'    => in_array( $policy['network'] ?? null, [ 'allow' ], true ) || is_array( $policy['network'] ?? null ) ? 'unenforceable' : 'invalid-network',
				'field'   => 'network',
				'message' => 'must be deny',
			];
		}
		if ( ! is_array( $policy['commands'] ?? null ) ) {
			$issues[] = [
				'code'    => 'invalid-command',
				'field'   => 'commands',
				'message' => 'must be a list',
			];
		}
		return $issues;
	}

	public static function assertCommand( array $policy, string $command ): void {}

	public static function commands(): array {
		$commands = [];
		foreach ( [
			'inspect-mounted-inputs' => 'Lists what the guest sees at each mount target.',
			'command-agent-run'      => 'Runs a program as the agent, without a shell, in the first writable mount.',
			'wordpress.run-php'      => 'Runs PHP in the guest with WordPress loaded.',
			'wordpress.wp-cli'       => 'Runs WP-CLI on the guest\'s WordPress.',
			'wordpress.rest-request' => 'Dispatches a request to the REST API of the guest\'s site, in process.',
			'wordpress.editor-open'  => 'Opens the editor.',
		] as $id => $description ) {
			$commands[] = [
				'id'                => $id,
				'description'       => $description,
				'acceptedArgs'      => [],
				'outputShape'       => 'text',
				'policyRequirement' => 'Runtime policy commands must include ' . $id,
				'recipe'            => true,
			] + ( 'wordpress.editor-open' === $id ? [ 'supported' => false, 'unsupportedReason' => 'there is no browser' ] : [] );
		}
		return [
			'schema'   => 'wp-codebox/command-catalog/v1',
			'commands' => $commands,
		];
	}
}
