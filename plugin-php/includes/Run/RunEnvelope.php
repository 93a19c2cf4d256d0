<?php
/**
 * Builds the result document of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Native\AgentTask;

defined( 'ABSPATH' ) || exit;

/**
 * Builds `wp-codebox/agent-task-run/v1` from the result of a run. The extension builds the document, so that it is the same
 * as that of the command line; this class adds the WordPress version of this site.
 */
final class RunEnvelope {

	/**
	 * Builds the result document that the caller of a task receives.
	 *
	 * @param array<string, mixed> $input   Task input, whose correlation fields are returned.
	 * @param array<string, mixed> $task    `wp-codebox/task-input/v1`.
	 * @param array<string, mixed> $result  `wp-codebox/run-result/v1` as the extension answers it.
	 * @param array<string, mixed> $model   Model data without secret values: `provider`, `model`, `credential`;
	 *   empty without a model.
	 * @param array<string, mixed> $preview Preview that the run had; empty without one.
	 * @return array<string, mixed>
	 */
	public function build( array $input, array $task, array $result, array $model = [], array $preview = [] ): array {
		return AgentTask::answer( $input, $task, $result, $model, (string) get_bloginfo( 'version' ), $preview );
	}

	/**
	 * Returns the members of a run handle that describe the task: `session`, `task`, `task_input` and `wp`.
	 *
	 * @param array<string, mixed> $input  Task input, whose correlation fields are returned.
	 * @param array<string, mixed> $task   `wp-codebox/task-input/v1`.
	 * @param string               $run_id Run id.
	 * @return array<string, mixed>
	 */
	public function started( array $input, array $task, string $run_id ): array {
		return AgentTask::started( $input, $task, $run_id, (string) get_bloginfo( 'version' ) );
	}
}
