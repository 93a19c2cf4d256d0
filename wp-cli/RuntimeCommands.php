<?php
/**
 * `wp codebox run-runtime-task`, `run-runtime-package` and `resolve-runtime-requirements`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;

defined( 'ABSPATH' ) || exit;

/**
 * Each command prints the answer of the ability of its name.
 */
final class RuntimeCommands extends DocumentCommand {

	/**
	 * Runs a task in a runtime: in a sandbox of this host, or in a runtime that a plugin provides.
	 *
	 * Exit status: 0 succeeded or started, else that of the error. The result is a JSON document.
	 *
	 * ## OPTIONS
	 *
	 * [--task=<task>]
	 * : Goal of the task, or a JSON object with goal and fields of run-agent-task.
	 *
	 * [--target-id=<id>]
	 * : Runtime: wp-codebox/host-playground is this host.
	 *
	 * [--input=<json>]
	 * : Fields for the runtime as a JSON object; for this host, fields of run-agent-task.
	 *
	 * [--task-input=<json>]
	 * : The task as a JSON document of the schema wp-codebox/task-input/v1.
	 *
	 * [--agent=<name>]
	 * : Name of the agent that does the task.
	 *
	 * [--mode=<mode>]
	 * : Mode of the agent.
	 *
	 * [--provider=<id>]
	 * : Id of the model provider, such as openai.
	 *
	 * [--model=<name>]
	 * : Model id as the provider names it.
	 *
	 * [--sandbox-session-id=<id>]
	 * : Client-side id of this call; returned in the result, not stored.
	 *
	 * [--orchestrator=<json>]
	 * : Client-side correlation data; returned in the result, not stored.
	 *
	 * [--metadata=<json>]
	 * : Free-form data; returned in the result.
	 *
	 * [--options=<json>]
	 * : Further fields for the runtime, with the lowest precedence.
	 *
	 * [--input-file=<file>]
	 * : File with the ability input as a JSON object; - reads STDIN. Flags override its fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     # Let the built-in agent fix a plugin.
	 *     $ wp codebox run-runtime-task --task='Fix the typos' --target-id=wp-codebox/host-playground --input='{"plugin":"sample"}'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function run_runtime_task( array $args, array $flags ): void {
		$this->enter(
			'run-runtime-task',
			$flags,
			'run-runtime-task-input',
			[
				'task'               => 'task',
				'target-id'          => 'text',
				'input'              => 'json',
				'task-input'         => 'json',
				'agent'              => 'text',
				'mode'               => 'text',
				'provider'           => 'text',
				'model'              => 'text',
				'sandbox-session-id' => 'text',
				'orchestrator'       => 'json',
				'metadata'           => 'json',
				'options'            => 'json',
			],
			fn( array $input, Authority $authority ): array => $this->services->tasks->run(
				$input,
				$authority,
				// Unlike the ability, the command waits until the run has ended.
				fn( array $task ): array => false === ( $task['wait'] ?? true ) ? $this->services->runs->detach( $task, $authority ) : $this->services->runs->run( $task, $authority )
			)
		);
	}

	/**
	 * Runs a workflow of an agent package in a disposable sandbox, or in the runtime of a plugin.
	 *
	 * Exit status: 0 succeeded, else 1. The result is a JSON document.
	 *
	 * ## OPTIONS
	 *
	 * [--package=<json>]
	 * : The package as a JSON object with slug and source.
	 *
	 * [--workflow=<json>]
	 * : The workflow as a JSON object with id and spec.
	 *
	 * [--input=<json>]
	 * : Input of the workflow as a JSON object.
	 *
	 * [--metadata=<json>]
	 * : Free-form data; returned in the result.
	 *
	 * [--input-file=<file>]
	 * : File with the ability input as a JSON object; - reads STDIN. Flags override its fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     # Run a package from a file.
	 *     $ wp codebox run-runtime-package --input-file=package.json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function run_runtime_package( array $args, array $flags ): void {
		$this->enter(
			'run-runtime-package',
			$flags,
			'run-runtime-package-input',
			[
				'package'  => 'json',
				'workflow' => 'json',
				'input'    => 'json',
				'metadata' => 'json',
			],
			fn( array $input, Authority $authority ): array => $this->services->packages->run( $input, $authority )
		);
	}

	/**
	 * Shows what a task needs and whether this site has it. Starts nothing and shows no secret.
	 *
	 * Exit status: 0 answered; the member availability says whether a task can start.
	 *
	 * ## OPTIONS
	 *
	 * [--runtime-provider=<id>]
	 * : Id of the model provider, such as openai.
	 *
	 * [--provider=<id>]
	 * : Same as --runtime-provider.
	 *
	 * [--model=<name>]
	 * : Model id as the provider names it.
	 *
	 * [--components=<components>]
	 * : Components, i.e. plugins that the sandbox loads: slugs separated by commas, or a JSON list.
	 *
	 * [--secret-env=<names>]
	 * : Names of the secrets that the task needs.
	 *
	 * [--inherit=<json>]
	 * : Connectors that the task inherits: {"connectors":["openai"]}.
	 *
	 * [--capabilities=<names>]
	 * : Capabilities of the runtime that the task needs, such as agent-task:run.
	 *
	 * [--dependencies=<slugs>]
	 * : Plugins that must be installed.
	 *
	 * [--requirements=<json>]
	 * : Further requirements by name, as a JSON object.
	 *
	 * [--runner-capabilities=<json>]
	 * : Capabilities of the caller; returned in the result.
	 *
	 * [--metadata=<json>]
	 * : Free-form data; returned in the result.
	 *
	 * [--input-file=<file>]
	 * : File with the ability input as a JSON object; - reads STDIN. Flags override its fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     # See whether a task with this model can start.
	 *     $ wp codebox resolve-runtime-requirements --runtime-provider=openai --model=some-model
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function resolve_runtime_requirements( array $args, array $flags ): void {
		$this->enter(
			'resolve-runtime-requirements',
			$flags,
			'resolve-runtime-requirements-input',
			[
				'runtime-provider'    => 'text',
				'provider'            => 'text',
				'model'               => 'text',
				'components'          => 'list',
				'secret-env'          => 'list',
				'inherit'             => 'json',
				'capabilities'        => 'list',
				'dependencies'        => 'list',
				'requirements'        => 'json',
				'runner-capabilities' => 'json',
				'metadata'            => 'json',
			],
			fn( array $input, Authority $authority ): array => $this->services->requirements->resolve( $input, $authority )
		);
	}
}
