<?php
/**
 * `wp codebox run-agent-task`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Runs a coding agent against a plugin or theme in a disposable sandbox.
 */
final class RunAgentTaskCommand extends Command {

	/**
	 * Runs a coding agent against a plugin or theme in a disposable sandbox.
	 *
	 * The agent sees a disposable WordPress and a private view of the code you name, and no
	 * network but what you allow. What it changes comes back as a bundle to review; nothing
	 * on this site changes. The agent's output is shown on STDERR as it comes; STDOUT gets the report.
	 *
	 * A list is given as a JSON list or with commas; a flag may be given once.
	 *
	 * Exit status: 0 succeeded or nothing to do, 1 failed, 3 partial or blocked, 124 out
	 * of time, 125 the sandbox could not start, 126 refused by policy, 130 cancelled. With
	 * --detach: 0 started.
	 *
	 * ## OPTIONS
	 *
	 * [<goal>]
	 * : What to do, in plain words.
	 *
	 * [--goal=<goal>]
	 * : The same, as a flag.
	 *
	 * [--plugin=<slug>]
	 * : Installed plugin to work on. Without any of plugin, theme and mount: the one that contains the current directory.
	 *
	 * [--theme=<slug>]
	 * : Installed theme to work on.
	 *
	 * [--mount=<mounts>]
	 * : Directories to work on, each SRC[:DST][:ro].
	 *
	 * [--git=<mode>]
	 * : Git repository of the code in the sandbox: baseline, one commit of what is mounted, or none. Default: baseline where the code lies in a git work tree.
	 *
	 * [--agent-command=<command>]
	 * : Program that does the work, with arguments; split like a shell would, run without one. A host file named by its absolute path is put into the sandbox read-only.
	 *
	 * [--agent=<name>]
	 * : Agent from the option wp_codebox_agents, a preset such as codex, or built-in, which needs a model and no program. Default: the site's, else built-in when there is a model.
	 *
	 * [--runtime-task=<task>]
	 * : Ability of the sandbox's WordPress that does the work: its name, or a JSON object with ability and input. A component registers it.
	 *
	 * [--component=<components>]
	 * : Plugins that the sandbox's WordPress loads beside the code under change, read-only: slugs of installed plugins or directories, each required and activated; or a JSON list of component contracts.
	 *
	 * [--provider-plugin-paths=<paths>]
	 * : Plugins that bring a model provider for WordPress's AI client: directories or slugs of installed plugins.
	 *
	 * [--agent-bundles=<bundles>]
	 * : Bundles of agents that a component imports before the work: JSON files, or a JSON list of objects with source or bundle.
	 *
	 * [--agent-success-codes=<codes>]
	 * : Exit codes of the agent that mean success.
	 *
	 * [--provider=<id>]
	 * : Model provider of the built-in agent: openai, anthropic, google, or one of the settings. Its key is the site's, from its connector, and never enters the sandbox.
	 *
	 * [--model=<name>]
	 * : Model, as its provider knows it.
	 *
	 * [--base-url=<url>]
	 * : Address of the provider, when it is another than the configured one: only a key lent with --secret-env goes there.
	 *
	 * [--max-turns=<number>]
	 * : Answers of the model at most.
	 *
	 * [--max-cost=<dollars>]
	 * : US dollars at most, by the prices of the provider in the settings, e.g. 0.50.
	 *
	 * [--budget=<json>]
	 * : Both and more as a JSON object: turns, input_tokens, output_tokens, cost_usd.
	 *
	 * [--allowed-tools=<tools>]
	 * : Tools the agent may use, e.g. workspace.read,workspace.edit. Default: every tool that acts in the sandbox.
	 *
	 * [--sandbox-tool-policy=<json>]
	 * : The same as a policy, wp-codebox/sandbox-tool-policy/v1.
	 *
	 * [--tool-bridge=<json>]
	 * : Both in one, wp-codebox/tool-bridge/v1.
	 *
	 * [--parent-tool-bridge=<json>]
	 * : Abilities of this site that the agent may call, as the user of --user: {"allowed_tools":["plugin/ability"]}.
	 *
	 * [--inherit=<json>]
	 * : What the task takes over from this site: {"connectors":["openai"]}.
	 *
	 * [--check=<commands>]
	 * : Command line to run on the result in a fresh sandbox; a JSON list for several.
	 *
	 * [--network=<posture>]
	 * : deny (default), host names, or a JSON object with allowHosts, presets, rules and tls.
	 *
	 * [--secret-env=<secrets>]
	 * : NAME[=HOST[,HOST]]: the agent gets a placeholder in its variable NAME, the value of NAME in this command's environment goes to these hosts only; without hosts, under the name of the provider's key, it opens the model and the agent gets nothing. A JSON list for several.
	 *
	 * [--timeout=<duration>]
	 * : Wall clock of the whole run, e.g. 90s, 15m, 1h.
	 *
	 * [--memory=<size>]
	 * : Memory of all processes together, e.g. 512M.
	 *
	 * [--disk=<size>]
	 * : What may be written inside the sandbox, e.g. 1G.
	 *
	 * [--processes=<number>]
	 * : Processes alive at once.
	 *
	 * [--output-limit=<size>]
	 * : Output kept of each program, e.g. 8M.
	 *
	 * [--find-renames]
	 * : Report renamed files as renames.
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
	 * [--detach]
	 * : Do not wait: print the run id and how to follow the run, which goes on without this command.
	 *
	 * [--input-file=<file>]
	 * : Task as a JSON object, as the ability takes it; - reads STDIN. Flags win.
	 *
	 * [--input-json=<json>]
	 * : The same, as a flag.
	 *
	 * [--format=<format>]
	 * : How to print the result. csv and count are about the changed files, ids is the run id.
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
	 * : Columns of the changed files with csv.
	 *
	 * [--porcelain]
	 * : Print only the run id, which every artifacts command accepts.
	 *
	 * ## EXAMPLES
	 *
	 *     # Let a program work on a plugin and check the result.
	 *     $ wp codebox run-agent-task "Make the check pass" --plugin=sample --agent-command='php /srv/agent.php' --check='php tests/check.php'
	 *
	 *     # Let the built-in agent do it with the model of this site.
	 *     $ wp codebox run-agent-task "Fix the failing settings save in my plugin" --plugin=sample --check='php tests/check.php'
	 *
	 *     # With a model on this machine, and few tools.
	 *     $ wp codebox run-agent-task "Fix the typos" --plugin=sample --base-url=http://models.internal:11434/v1 --model=qwen3-coder --allowed-tools=workspace.read,workspace.edit
	 *
	 *     # A tool whose exit status 1 means that it fixed something.
	 *     $ wp codebox run-agent-task "Fix the coding style" --plugin=sample --agent-command='phpcbf .' --agent-success-codes=0,1
	 *
	 *     # Let an agent that is a plugin do it, as an ability inside the sandbox.
	 *     $ wp codebox run-agent-task "Mend the settings page" --plugin=sample --component=my-agent --runtime-task=my-agent/repair
	 *
	 *     # Keep the run id for a script.
	 *     $ run=$(wp codebox run-agent-task --input-file=task.json --porcelain)
	 *
	 *     # Start it and look in later.
	 *     $ run=$(wp codebox run-agent-task "Fix the coding style" --plugin=sample --agent=fixer --detach --porcelain)
	 *     $ wp codebox runs events $run --follow
	 *
	 *     # Let the agent use a key of this shell's environment without seeing it.
	 *     $ wp codebox run-agent-task "Translate the readme" --plugin=sample --agent=writer --network=api.example.com --secret-env=API_KEY=api.example.com
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox run-agent-task',
			Capabilities::RUN,
			'wp-codebox/run-agent-task',
			$flags,
			fn( Authority $authority ): int => $this->run( $args, $flags, $authority )
		);
	}

	/**
	 * Runs the task and prints what came of it.
	 *
	 * @param list<string>         $args      Positional arguments.
	 * @param array<string, mixed> $flags     Flags.
	 * @param Authority            $authority In whose name.
	 */
	private function run( array $args, array $flags, Authority $authority ): int {
		$this->services->gate->check();
		$programs = new StagedPrograms();
		$input    = ( new TaskFlags( $this->services ) )->input( $args, $flags );
		if ( Authority::Operator === $authority ) {
			$input = $programs->rewrite( $input );
		}
		foreach ( $programs->files() as $file ) {
			$this->console->say( sprintf( 'The sandbox can read %s as %s.', $file['source'], $file['target'] ) );
		}
		if ( ! empty( $flags['detach'] ) || false === ( $input['wait'] ?? true ) ) {
			$this->handle( $this->services->runs->detach( $input, $authority, $programs->files(), SecretFlags::secrets( $flags ) ), $flags );
			return 0;
		}
		$stream = new RunStream( $this->console );
		$run    = $this->services->runs->run( $input, $authority, $programs->files(), [ $stream, 'started' ], [ $stream, 'event' ], SecretFlags::secrets( $flags ) );
		$this->print( $run, $flags );
		return (int) $run['exit_code'];
	}

	/**
	 * Prints the result.
	 *
	 * @param array<string, mixed> $run   `wp-codebox/agent-task-run/v1`.
	 * @param array<string, mixed> $flags Flags.
	 */
	private function print( array $run, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			fwrite( STDOUT, $run['run']['run_id'] . "\n" );
		} elseif ( 'table' === $flags['format'] ) {
			fwrite( STDOUT, RunReport::text( $run ) );
		} else {
			$files = array_map(
				static fn( array $entry ): array => $entry + [
					'insertions' => '',
					'deletions'  => '',
				],
				$run['changed_files']
			);
			$this->document( $run, $files, [ 'status', 'path', 'insertions', 'deletions' ], 'path', $flags );
		}
	}

	/**
	 * Prints how to follow a run that goes on.
	 *
	 * @param array<string, mixed> $handle `wp-codebox/run-handle/v1`.
	 * @param array<string, mixed> $flags  Flags.
	 */
	private function handle( array $handle, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			fwrite( STDOUT, $handle['run_id'] . "\n" );
		} elseif ( 'table' === $flags['format'] ) {
			fwrite( STDOUT, RunReport::running( $handle ) );
		} else {
			$this->document( $handle, [ $handle ], [ 'run_id', 'status', 'created_at' ], 'run_id', $flags );
		}
	}
}
