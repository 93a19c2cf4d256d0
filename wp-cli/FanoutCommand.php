<?php
/**
 * `wp codebox run-agent-task-fanout`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Runs several workers in parallel.
 */
final class FanoutCommand extends Command {

	/**
	 * Runs workers with dependencies, several in parallel, each in its own disposable sandbox.
	 *
	 * A worker is an object with id, goal, dependsOn (ids of workers that must complete first),
	 * timeout_seconds, required (default true) and fields of run-agent-task. Flags set the fields that all
	 * workers share. No worker starts when any part of the plan is invalid. Two workers that changed the same
	 * file are a conflict. Workers wait while the host runs its maximum number of runs. Ctrl-C cancels all
	 * workers.
	 *
	 * Exit status: 0 all workers succeeded, 3 some did, 1 none did, 130 cancelled.
	 *
	 * ## OPTIONS
	 *
	 * [--workers=<json>]
	 * : The workers as a JSON list.
	 *
	 * [--concurrency=<number>]
	 * : Number of workers that run in parallel; default 1, at most 8 unless this site sets another limit.
	 *
	 * [--policy=<policy>]
	 * : Status of the whole fan-out when two workers conflict.
	 * ---
	 * options:
	 *   - fail
	 *   - partial
	 *   - repair
	 *   - caller-review-required
	 * ---
	 *
	 * [--plugin=<slug>]
	 * : Installed plugin that all workers work on. Without --plugin, --theme and --mount: the plugin or theme
	 * that contains the current directory.
	 *
	 * [--theme=<slug>]
	 * : Installed theme that all workers work on.
	 *
	 * [--mount=<mounts>]
	 * : Directories that all workers work on, each SRC[:DST][:ro].
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
	 * : Columns: worker_id, goal, status, outcome, run_id, artifact_id, exit_code, summary, error.
	 *
	 * [--porcelain]
	 * : Print only the run ids of completed workers, one per line.
	 *
	 * ## EXAMPLES
	 *
	 *     # Two workers at once, a third after both.
	 *     $ wp codebox run-agent-task-fanout --concurrency=2 --agent=fixer --workers='[{"id":"one","goal":"Fix it","plugin":"one"},{"id":"two","goal":"Fix it","plugin":"two"},{"id":"docs","goal":"Describe it","plugin":"docs","dependsOn":["one","two"]}]'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox run-agent-task-fanout',
			Capabilities::RUN,
			'wp-codebox/run-agent-task-fanout',
			$flags,
			function ( Authority $authority ) use ( $flags ): int {
				$this->services->gate->check();
				$input  = ( new TaskFlags( $this->services ) )->group( 'workers', $flags, 'run-agent-task-fanout-input' );
				$report = new GroupReport( $this->console, $this->table );
				return $report->print( $this->services->fanouts->run( $input, $authority, $report->hooks( $authority, 'worker' ) ), 'worker_id', $flags );
			}
		);
	}
}
