<?php
/**
 * `wp codebox browser-session`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Creates sessions of WordPress in the browser of a user.
 */
final class BrowserSessionCommand extends Command {

	/** Kind of each flag. */
	private const KINDS = [
		'goal'                  => 'text',
		'target'                => 'json',
		'allowed-tools'         => 'list',
		'expected-artifacts'    => 'list',
		'tool-bridge'           => 'json',
		'sandbox-tool-policy'   => 'json',
		'policy'                => 'json',
		'context'               => 'json',
		'agent'                 => 'text',
		'provider'              => 'text',
		'model'                 => 'text',
		'mode'                  => 'text',
		'provider-plugin-paths' => 'list',
		'agent-bundles'         => 'json',
		'inherit'               => 'json',
		'sandbox-session-id'    => 'text',
		'orchestrator'          => 'json',
		'playground'            => 'json',
		'browser-runner'        => 'json',
		'browser-plugins'       => 'json',
		'runtime'               => 'json',
		'blueprint'             => 'json',
		'artifact-files'        => 'json',
		'roots'                 => 'json',
		'landing-page'          => 'text',
	];

	/**
	 * Creates a session for the user of --user and prints its contract. A page of that user starts it.
	 *
	 * Exit status: 0 created, else that of the error. The result is a JSON document.
	 *
	 * ## OPTIONS
	 *
	 * [--goal=<goal>]
	 * : What the session is for.
	 *
	 * [--target=<json>]
	 * : Subject of the task: kind, ref, path, url.
	 *
	 * [--allowed-tools=<names>]
	 * : Tools of the agent in the sandbox, comma-separated.
	 *
	 * [--expected-artifacts=<names>]
	 * : Names of results, comma-separated.
	 *
	 * [--tool-bridge=<json>]
	 * : Tools in one object.
	 *
	 * [--sandbox-tool-policy=<json>]
	 * : Policy of the tools.
	 *
	 * [--policy=<json>]
	 * : Policy of the task.
	 *
	 * [--context=<json>]
	 * : Free-form context.
	 *
	 * [--agent=<value>]
	 * : Agent.
	 *
	 * [--provider=<value>]
	 * : Model provider.
	 *
	 * [--model=<value>]
	 * : Model id as the provider names it.
	 *
	 * [--mode=<value>]
	 * : Mode of the agent.
	 *
	 * [--provider-plugin-paths=<names>]
	 * : Installed plugins to seed and activate, comma-separated.
	 *
	 * [--agent-bundles=<json>]
	 * : List of agent bundles.
	 *
	 * [--inherit=<json>]
	 * : Connectors of this site.
	 *
	 * [--sandbox-session-id=<value>]
	 * : Id of the session; default a new one.
	 *
	 * [--orchestrator=<json>]
	 * : Correlation data; returned in the answer.
	 *
	 * [--playground=<json>]
	 * : Addresses of another engine.
	 *
	 * [--browser-runner=<json>]
	 * : Paths and invocation of the runner.
	 *
	 * [--browser-plugins=<json>]
	 * : List of plugins to install.
	 *
	 * [--runtime=<json>]
	 * : Code and files of the sandbox.
	 *
	 * [--blueprint=<json>]
	 * : Blueprint.
	 *
	 * [--artifact-files=<json>]
	 * : List of files.
	 *
	 * [--roots=<json>]
	 * : List of plugins, themes and bundles of this site.
	 *
	 * [--landing-page=<value>]
	 * : Path that is shown first.
	 *
	 * [--preview-only]
	 * : Without task and runner.
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
	 *     # Try a plugin of this site in the browser of the user admin.
	 *     $ wp codebox browser-session create --user=admin --goal='Look at it' --roots='[{"kind":"plugin","slug":"sample"}]'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function create( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox browser-session create',
			Capabilities::RUN,
			'wp-codebox/create-browser-playground-session',
			$flags,
			function () use ( $flags ): int {
				$input = DocumentFlags::input( $this->services, 'create-browser-playground-session-input', $flags, self::KINDS );
				if ( ! empty( $flags['preview-only'] ) ) {
					$input['preview_only'] = true;
				}
				$this->console->document( $this->services->browser->create->create( $input ), $flags['format'] );
				return 0;
			}
		);
	}
}
