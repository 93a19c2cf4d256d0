<?php
/**
 * Chooses the tools that the agent of a task may call.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Combines the task's fields and the results of this site's filters to a list of tool names and a tool policy, which has one
 * rule for each tool. The PHP extension defines which tools exist and the form of a policy.
 */
final class ToolChoice {

	public const POLICY = 'wp-codebox/sandbox-tool-policy/v1';
	public const BRIDGE = 'wp-codebox/tool-bridge/v1';

	/**
	 * Returns the tool names and the tool policy of a task.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array{allowed_tools: list<string>|null, policy: array<string, mixed>|null} Null when the task
	 *   sets neither.
	 */
	public function resolve( array $input ): array {
		$bridge  = (array) ( $input['tool_bridge'] ?? [] );
		$allowed = $this->names( $input['allowed_tools'] ?? $bridge['allowed_tools'] ?? null );
		$policy  = $input['sandbox_tool_policy'] ?? $bridge['sandbox_tool_policy'] ?? null;
		if ( null === $policy && [] === $bridge ) {
			/**
			 * Supplies the tools of a task that has neither `sandbox_tool_policy` nor `tool_bridge`.
			 *
			 * @param array<string, mixed> $bridge  Bridge `wp-codebox/tool-bridge/v1`: `allowed_tools` and
			 *   `sandbox_tool_policy`; empty uses the task's own fields.
			 * @param list<string>         $allowed Tools that the task names; empty when it names none.
			 * @param array<string, mixed> $input   Task input.
			 */
			$given   = apply_filters( 'wp_codebox_tool_bridge', [], $allowed ?? [], $input );
			$bridge  = is_array( $given ) ? $given : [];
			$policy  = $bridge['sandbox_tool_policy'] ?? null;
			$allowed = $this->names( $bridge['allowed_tools'] ?? null ) ?? $allowed;
		}
		$policy = is_array( $policy ) ? $policy : $this->derived( $allowed, $input );
		if ( null === $policy && has_filter( 'wp_codebox_resolved_sandbox_tool_policy' ) ) {
			/**
			 * Supplies the tool policy of a task when neither the task nor another filter gives one. Without
			 * it, the supervisor derives the policy from the names of the allowed tools.
			 *
			 * @param array<string, mixed> $policy Empty.
			 * @param array<string, mixed> $input  Task input.
			 */
			$given  = apply_filters( 'wp_codebox_resolved_sandbox_tool_policy', [], $input );
			$policy = is_array( $given ) && [] !== $given ? $given : null;
		}
		/**
		 * Filters the tools of a task as the final step before it starts.
		 *
		 * @param array<string, mixed> $bridge  Bridge `wp-codebox/tool-bridge/v1`: `allowed_tools` and
		 *   `sandbox_tool_policy`, each only when set.
		 * @param list<string>         $allowed Names of allowed tools; empty when none is named.
		 * @param array<string, mixed> $input   Task input.
		 */
		$resolved = apply_filters(
			'wp_codebox_resolved_tool_bridge',
			[
				'schema'  => self::BRIDGE,
				'version' => 1,
			] + array_filter(
				[
					'allowed_tools'       => $allowed,
					'sandbox_tool_policy' => $policy,
				],
				'is_array'
			),
			$allowed ?? [],
			$input
		);
		if ( ! is_array( $resolved ) ) {
			// The filter returned an invalid value, so no tool is allowed.
			return [
				'allowed_tools' => [],
				'policy'        => $this->policy( [] ),
			];
		}
		return [
			'allowed_tools' => $this->names( $resolved['allowed_tools'] ?? null ),
			'policy'        => is_array( $resolved['sandbox_tool_policy'] ?? null ) ? $resolved['sandbox_tool_policy'] : null,
		];
	}

	/**
	 * Builds a tool policy from the task's tool names, for filters of this site that edit it. Without such a filter the result
	 * is null, because the supervisor derives the same policy from the names.
	 *
	 * @param list<string>|null    $allowed Tools that the task names.
	 * @param array<string, mixed> $input   Task input.
	 * @return array<string, mixed>|null
	 */
	private function derived( ?array $allowed, array $input ): ?array {
		if ( null === $allowed || ! has_filter( 'wp_codebox_sandbox_tool_policy' ) && ! has_filter( 'wp_codebox_sandbox_tool_policy_tool' ) ) {
			return null;
		}
		$rules = [];
		foreach ( $allowed as $id ) {
			/**
			 * Filters one rule of the policy that is built from the task's tool names. Any value but a rule
			 * removes the tool.
			 *
			 * @param array<string, mixed> $rule  Rule from `tools` of `wp-codebox/sandbox-tool-policy/v1`.
			 * @param string               $id    Tool id.
			 * @param array<string, mixed> $input Task input.
			 */
			$rule = apply_filters( 'wp_codebox_sandbox_tool_policy_tool', $this->rule( $id ), $id, $input );
			if ( is_array( $rule ) && [] !== $rule ) {
				$rules[] = $rule;
			}
		}
		/**
		 * Filters the policy that is built from the task's tool names. Any value but a policy allows no tool.
		 *
		 * @param array<string, mixed> $policy  `wp-codebox/sandbox-tool-policy/v1`.
		 * @param list<string>         $allowed Tools that the task names.
		 * @param array<string, mixed> $input   Task input.
		 */
		$policy = apply_filters( 'wp_codebox_sandbox_tool_policy', $this->policy( $rules ), $allowed, $input );
		return is_array( $policy ) ? $policy : $this->policy( [] );
	}

	/**
	 * Builds a tool policy from its rules.
	 *
	 * @param list<array<string, mixed>> $rules Rules of the tools.
	 * @return array<string, mixed>
	 */
	private function policy( array $rules ): array {
		return [
			'schema'  => self::POLICY,
			'version' => 1,
			'tools'   => $rules,
		];
	}

	/**
	 * Builds the rule that lets the agent call a tool of the sandbox.
	 *
	 * @param string $id Tool id.
	 * @return array<string, mixed>
	 */
	private function rule( string $id ): array {
		return [
			'id'                   => $id,
			'runtime_tool_id'      => (string) preg_replace( '/[^A-Za-z0-9_]/', '_', $id ),
			'execution_location'   => 'sandbox',
			'transport_visibility' => 'sandbox',
			'allowed'              => true,
			'runtime'              => [
				'environment'      => 'runtime_local',
				'capability_scope' => 'runtime_local',
			],
		];
	}

	/**
	 * Returns the distinct strings of an array; null when the value is not an array.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return list<string>|null
	 */
	private function names( mixed $value ): ?array {
		return is_array( $value ) ? array_values( array_unique( array_filter( $value, 'is_string' ) ) ) : null;
	}
}
