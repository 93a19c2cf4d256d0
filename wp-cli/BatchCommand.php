<?php
/**
 * `wp codebox run-agent-task-batch`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Runs several tasks one after the other.
 */
final class BatchCommand extends Command {

	/**
	 * Runs several tasks one after the other, each in its own disposable sandbox.
	 *
	 * A task is a goal, or an object with fields of run-agent-task. Flags set the fields that all tasks
	 * share. An invalid or failing task is reported as failed; the other tasks still run. Ctrl-C cancels the
	 * running task and all later ones.
	 *
	 * Exit status: 0 all tasks succeeded, 3 some did, 1 none did, 130 cancelled.
	 *
	 * ## OPTIONS
	 *
	 * [--tasks=<json>]
	 * : The tasks as a JSON list.
	 *
	 * [--stop-on-failure]
	 * : Start no further task after the first one that does not succeed.
	 *
	 * [--plugin=<slug>]
	 * : Installed plugin that all tasks work on. Without --plugin, --theme and --mount: the plugin or theme
	 * that contains the current directory.
	 *
	 * [--theme=<slug>]
	 * : Installed theme that all tasks work on.
	 *
	 * [--mount=<mounts>]
	 * : Directories that all tasks work on, each SRC[:DST][:ro].
	 *
	 * [--git=<mode>]
	 * : Git repository of the code in each sandbox, same values as in run-agent-task.
	 *
	 * [--agent-command=<command>]
	 * : Program that does the work, same form as in run-agent-task.
	 *
	 * [--agent=<name>]
	 * : Agent from the option wp_codebox_agents, a preset, or built-in.
	 *
	 * [--agent-success-codes=<codes>]
	 * : Exit codes of the agent that mean success.
	 *
	 * [--provider=<id>]
	 * : Model provider of the built-in agent, same values as in run-agent-task.
	 *
	 * [--model=<name>]
	 * : Model id as the provider names it.
	 *
	 * [--base-url=<url>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--max-turns=<number>]
	 * : Maximum number of model responses per run.
	 *
	 * [--max-cost=<dollars>]
	 * : Cost limit per run, in US dollars.
	 *
	 * [--budget=<json>]
	 * : Same meaning as in run-agent-task, for each run.
	 *
	 * [--allowed-tools=<tools>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--sandbox-tool-policy=<json>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--tool-bridge=<json>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--parent-tool-bridge=<json>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--inherit=<json>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--check=<commands>]
	 * : Command line to run on each result in a new sandbox; a JSON list for several.
	 *
	 * [--network=<posture>]
	 * : Same meaning as in run-agent-task.
	 *
	 * [--timeout=<duration>]
	 * : Wall-clock time limit of each run, e.g. 90s, 15m, 1h.
	 *
	 * [--placement=<place>]
	 * : Where each run runs, same values as in run-agent-task.
	 *
	 * [--sandbox-session-id=<id>]
	 * : Client-side id of this call; returned in the result, not stored.
	 *
	 * [--session-id=<id>]
	 * : Client-side id of the agent's conversation; returned in the result, not stored.
	 *
	 * [--orchestrator=<json>]
	 * : Client-side correlation data; returned in the result, not stored.
	 *
	 * [--input-file=<file>]
	 * : File with the ability input as a JSON object; - reads STDIN. Flags override its fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--<field>=<value>]
	 * : Any other field of the input by its name, such as --task-timeout-seconds=60 or --target='{"kind":"plugin"}'.
	 *
	 * [--format=<format>]
	 * : Output format of the result. table, csv and count list the rows; ids prints run ids.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: index, task, status, outcome, run_id, artifact_id, exit_code, summary, error.
	 *
	 * [--porcelain]
	 * : Print only the run ids of completed tasks, one per line.
	 *
	 * ## EXAMPLES
	 *
	 *     # Two goals for one plugin.
	 *     $ wp codebox run-agent-task-batch --tasks='["Fix the coding style","Fix the typos"]' --plugin=sample --agent=fixer
	 *
	 *     # Tasks for different plugins, from a file.
	 *     $ wp codebox run-agent-task-batch --input-file=batch.json --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox run-agent-task-batch',
			Capabilities::RUN,
			'wp-codebox/run-agent-task-batch',
			$flags,
			function ( Authority $authority ) use ( $flags ): int {
				$this->services->gate->check();
				$input  = ( new TaskFlags( $this->services ) )->group( 'tasks', $flags, 'run-agent-task-batch-input' );
				$report = new GroupReport( $this->console, $this->table );
				return $report->print( $this->services->batches->run( $input, $authority, $report->hooks( $authority, 'task' ) ), 'index', $flags );
			}
		);
	}
}
