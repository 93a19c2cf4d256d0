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
 * Runs several workers at once.
 */
final class FanoutCommand extends Command {

	/**
	 * Runs workers that may depend on each other, some at once, each in a disposable sandbox of its own.
	 *
	 * A worker is an object with id, goal, dependsOn (ids of workers that must be completed
	 * first), timeout_seconds, required (true unless it says false) and fields of
	 * run-agent-task; what all of them share is given once, as flags. A plan that is wrong
	 * anywhere starts nothing. Two workers that changed the same file are a conflict. On a host
	 * that is full the workers wait. Ctrl-C cancels all of them.
	 *
	 * Exit status: 0 all good, 3 some of it, 1 none of it, 130 cancelled.
	 *
	 * ## OPTIONS
	 *
	 * [--workers=<json>]
	 * : The workers as a JSON list.
	 *
	 * [--concurrency=<number>]
	 * : Workers at once; 1 when left out, 8 at most unless this site says otherwise.
	 *
	 * [--policy=<policy>]
	 * : What a conflict makes of the whole.
	 * ---
	 * options:
	 *   - fail
	 *   - partial
	 *   - repair
	 *   - caller-review-required
	 * ---
	 *
	 * [--plugin=<slug>]
	 * : Installed plugin that all work on. Without any code of its own: the one that contains the current directory.
	 *
	 * [--theme=<slug>]
	 * : Installed theme that all work on.
	 *
	 * [--mount=<mounts>]
	 * : Directories that all work on, each SRC[:DST][:ro].
	 *
	 * [--git=<mode>]
	 * : Git repository of the code in each sandbox, as for run-agent-task.
	 *
	 * [--agent-command=<command>]
	 * : Program that does the work, as for run-agent-task.
	 *
	 * [--agent=<name>]
	 * : Agent from the option wp_codebox_agents, a preset, or built-in.
	 *
	 * [--agent-success-codes=<codes>]
	 * : Exit codes of the agent that mean success.
	 *
	 * [--provider=<id>]
	 * : Model provider of the built-in agent, as for run-agent-task.
	 *
	 * [--model=<name>]
	 * : Model, as its provider knows it.
	 *
	 * [--base-url=<url>]
	 * : As for run-agent-task.
	 *
	 * [--max-turns=<number>]
	 * : Answers of the model at most, of each run.
	 *
	 * [--max-cost=<dollars>]
	 * : US dollars at most, of each run.
	 *
	 * [--budget=<json>]
	 * : As for run-agent-task, of each run.
	 *
	 * [--allowed-tools=<tools>]
	 * : As for run-agent-task.
	 *
	 * [--sandbox-tool-policy=<json>]
	 * : As for run-agent-task.
	 *
	 * [--tool-bridge=<json>]
	 * : As for run-agent-task.
	 *
	 * [--parent-tool-bridge=<json>]
	 * : As for run-agent-task.
	 *
	 * [--inherit=<json>]
	 * : As for run-agent-task.
	 *
	 * [--check=<commands>]
	 * : Command line to run on each result in a fresh sandbox; a JSON list for several.
	 *
	 * [--network=<posture>]
	 * : As for run-agent-task.
	 *
	 * [--timeout=<duration>]
	 * : Wall clock of each run, e.g. 90s, 15m, 1h.
	 *
	 * [--sandbox-session-id=<id>]
	 * : Your id of this call; echoed in the answer, stored nowhere.
	 *
	 * [--session-id=<id>]
	 * : Your id of the agent's conversation; echoed in the answer, stored nowhere.
	 *
	 * [--orchestrator=<json>]
	 * : Your correlation data; echoed in the answer, stored nowhere.
	 *
	 * [--input-file=<file>]
	 * : Input as a JSON object, as the ability takes it; - reads STDIN. Flags win.
	 *
	 * [--input-json=<json>]
	 * : The same, as a flag.
	 *
	 * [--format=<format>]
	 * : How to print the result. table, csv and count are about the rows, ids are run ids.
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
	 * : Print only the run ids of what is completed, one a line.
	 *
	 * ## EXAMPLES
	 *
	 *     # Two workers at once, a third after both.
	 *     $ wp codebox run-agent-task-fanout --concurrency=2 --agent=fixer --workers='[{"id":"one","goal":"Fix it","plugin":"one"},{"id":"two","goal":"Fix it","plugin":"two"},{"id":"docs","goal":"Describe it","plugin":"docs","dependsOn":["one","two"]}]'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
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
