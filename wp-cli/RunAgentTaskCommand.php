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
	 * The agent sees a disposable WordPress, a private copy-on-write view of the mounted code, and only the
	 * network hosts that you allow. Its changes come back as a bundle to review; nothing on this site
	 * changes. The agent's output appears on STDERR while the run lasts; the report goes to STDOUT.
	 *
	 * A list is a JSON list, or values separated by commas. Each flag may be given once.
	 *
	 * Exit status: 0 succeeded or nothing to do, 1 failed, 3 partial or blocked, 124 out
	 * of time, 125 the sandbox could not start, 126 refused by policy, 130 cancelled. With
	 * --detach: 0 started.
	 *
	 * ## OPTIONS
	 *
	 * [<goal>]
	 * : Task of the agent, in natural language.
	 *
	 * [--goal=<goal>]
	 * : Task of the agent; same as the positional argument <goal>.
	 *
	 * [--plugin=<slug>]
	 * : Installed plugin to work on. Without --plugin, --theme and --mount: the plugin or theme that contains
	 * the current directory.
	 *
	 * [--theme=<slug>]
	 * : Installed theme to work on.
	 *
	 * [--mount=<mounts>]
	 * : Directories to work on, each SRC[:DST][:ro].
	 *
	 * [--git=<mode>]
	 * : Git repository of the code in the sandbox: `baseline` is one commit of the mounted files, `none` is
	 * no repository. Default: baseline when the code is in a git work tree.
	 *
	 * [--agent-command=<command>]
	 * : Program that does the work, with arguments. The command splits the string like a shell but runs it
	 * without one. A host file named by its absolute path is mounted read-only into the sandbox.
	 *
	 * [--agent=<name>]
	 * : Agent: one from the option wp_codebox_agents, a preset such as codex, or built-in, which needs a
	 * model and no program. Default: the site's default agent, else built-in when a model is configured.
	 *
	 * [--runtime-task=<task>]
	 * : Ability of the sandbox's WordPress that does the work: its name, or a JSON object with ability and
	 * input. A component must register it.
	 *
	 * [--component=<components>]
	 * : Plugins that the sandbox's WordPress loads beside the code under change, mounted read-only: slugs of
	 * installed plugins or directories, each required and activated; or a JSON list of component contracts.
	 *
	 * [--provider-plugin-paths=<paths>]
	 * : Plugins that add a model provider to WordPress's AI client: directories or plugin slugs.
	 *
	 * [--agent-bundles=<bundles>]
	 * : Agent bundles that a component imports before the work starts: JSON files, or a JSON list of objects
	 * with source or bundle.
	 *
	 * [--agent-success-codes=<codes>]
	 * : Exit codes of the agent that mean success.
	 *
	 * [--provider=<id>]
	 * : Model provider of the built-in agent: openai, anthropic, google, or one from the settings. The run
	 * uses the key of the site's connector; the key never enters the sandbox.
	 *
	 * [--model=<name>]
	 * : Model id as the provider names it.
	 *
	 * [--base-url=<url>]
	 * : Base URL of the provider, when it differs from the configured one. Only a key given with --secret-env
	 * is sent there.
	 *
	 * [--max-turns=<number>]
	 * : Maximum number of model responses.
	 *
	 * [--max-cost=<dollars>]
	 * : Cost limit in US dollars, computed with the provider prices of the settings, e.g. 0.50.
	 *
	 * [--budget=<json>]
	 * : Model limits as a JSON object: turns, input_tokens, output_tokens, cost_usd.
	 *
	 * [--allowed-tools=<tools>]
	 * : Tools that the agent may use, e.g. workspace.read,workspace.edit. Default: all that act in the sandbox.
	 *
	 * [--sandbox-tool-policy=<json>]
	 * : Allowed tools as a policy object, wp-codebox/sandbox-tool-policy/v1.
	 *
	 * [--tool-bridge=<json>]
	 * : Sandbox tools and abilities of this site in one object, wp-codebox/tool-bridge/v1.
	 *
	 * [--parent-tool-bridge=<json>]
	 * : Abilities of this site that the agent may call, as --user: {"allowed_tools":["plugin/ability"]}.
	 *
	 * [--inherit=<json>]
	 * : Connectors that the task inherits from this site: {"connectors":["openai"]}.
	 *
	 * [--check=<commands>]
	 * : Command line to run on the result in a new sandbox; a JSON list for several.
	 *
	 * [--service=<kinds>]
	 * : Servers in the sandbox, separated by commas: mysql, redis, smtp, http. With mysql the sandbox's WordPress
	 * uses MariaDB in place of SQLite.
	 *
	 * [--network=<posture>]
	 * : Network policy: deny (default), host names, or a JSON object with allowHosts, presets, rules and tls.
	 *
	 * [--secret-env=<secrets>]
	 * : Secret as NAME[=HOST[,HOST]]. The agent gets a placeholder in its variable NAME; the value, read from
	 * this command's environment, is sent to the named hosts only. Without hosts, NAME must be the provider's
	 * key: the run uses the key for the model and the agent gets no variable. A JSON list for several.
	 *
	 * [--timeout=<duration>]
	 * : Wall-clock time limit of the whole run, e.g. 90s, 15m, 1h.
	 *
	 * [--memory=<size>]
	 * : Memory limit of all processes together, e.g. 512M.
	 *
	 * [--disk=<size>]
	 * : Limit of data written inside the sandbox, e.g. 1G.
	 *
	 * [--processes=<number>]
	 * : Maximum number of processes alive at once.
	 *
	 * [--cpus=<number>]
	 * : Processors that all processes together may use, e.g. 1.5. The host must be able to enforce it.
	 *
	 * [--output-limit=<size>]
	 * : Output stored per program, e.g. 8M.
	 *
	 * [--find-renames]
	 * : List a renamed file as a rename instead of a deletion and an addition.
	 *
	 * [--placement=<place>]
	 * : Where the run runs: `host`, the default, or `cluster`, the cluster that the operator has configured.
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
	 * [--detach]
	 * : Do not wait: print the run id and the follow command; the run continues after this command ends.
	 *
	 * [--input-file=<file>]
	 * : File with the task as a JSON object of the ability's input schema; - reads STDIN. Flags override its
	 * fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--<field>=<value>]
	 * : Any other field of the input by its name, such as --task-timeout-seconds=60 or --target='{"kind":"plugin"}'.
	 *
	 * [--format=<format>]
	 * : Output format of the result. csv and count list the changed files; ids prints the run id.
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
	 * : Columns of the changed files in csv.
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
	 *     # With a model in the local network, and only two tools.
	 *     $ wp codebox run-agent-task "Fix the typos" --plugin=sample --base-url=http://models.internal:11434/v1 --model=qwen3-coder --allowed-tools=workspace.read,workspace.edit
	 *
	 *     # A tool whose exit status 1 means that it fixed something.
	 *     $ wp codebox run-agent-task "Fix the coding style" --plugin=sample --agent-command='phpcbf .' --agent-success-codes=0,1
	 *
	 *     # Let an agent that is a plugin do it, as an ability inside the sandbox.
	 *     $ wp codebox run-agent-task "Mend the settings page" --plugin=sample --component=my-agent --runtime-task=my-agent/repair
	 *
	 *     # Start it and look in later.
	 *     $ run=$(wp codebox run-agent-task "Fix the coding style" --plugin=sample --agent=fixer --detach --porcelain)
	 *     $ wp codebox runs events $run --follow
	 *
	 *     # Let the agent use a key of this shell's environment without seeing it.
	 *     $ wp codebox run-agent-task "Translate the readme" --plugin=sample --agent=writer --network=api.example.com --secret-env=API_KEY=api.example.com
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
	 * Runs the task and prints the result.
	 *
	 * @param list<string>         $args      Positional arguments.
	 * @param array<string, mixed> $flags     Flags of the command line, by name.
	 * @param Authority            $authority User or operator the call runs as.
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
	 * Prints the result of the ended run.
	 *
	 * @param array<string, mixed> $run   `wp-codebox/agent-task-run/v1`.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	private function print( array $run, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			Console::print( (string) $run['run']['run_id'] );
		} elseif ( 'table' === $flags['format'] ) {
			Console::print( RunReport::text( $run ) );
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
	 * Prints the handle of a detached run: its id, and the command that follows it.
	 *
	 * @param array<string, mixed> $handle Run handle `wp-codebox/run-handle/v1`.
	 * @param array<string, mixed> $flags  Flags of the command line, by name.
	 */
	private function handle( array $handle, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			Console::print( (string) $handle['run_id'] );
		} elseif ( 'table' === $flags['format'] ) {
			Console::print( RunReport::running( $handle ) );
		} else {
			$this->document( $handle, [ $handle ], [ 'run_id', 'status', 'created_at' ], 'run_id', $flags );
		}
	}
}
