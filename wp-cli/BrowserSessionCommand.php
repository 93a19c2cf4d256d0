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
	 * Creates a session for the user of --user and prints a JSON document, with which a page of that user starts it.
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
	 * : Names of the results that the caller expects, comma-separated.
	 *
	 * [--tool-bridge=<json>]
	 * : Tools of the agent in the sandbox as one JSON object.
	 *
	 * [--sandbox-tool-policy=<json>]
	 * : Tools that the agent may use, as a policy object.
	 *
	 * [--policy=<json>]
	 * : Policy of the task.
	 *
	 * [--context=<json>]
	 * : Free-form context.
	 *
	 * [--agent=<value>]
	 * : Name of the agent that does the task.
	 *
	 * [--provider=<value>]
	 * : Id of the model provider, such as openai.
	 *
	 * [--model=<value>]
	 * : Model id as the provider names it.
	 *
	 * [--mode=<value>]
	 * : Mode of the agent.
	 *
	 * [--provider-plugin-paths=<names>]
	 * : Installed plugins that the sandbox gets and activates, comma-separated.
	 *
	 * [--agent-bundles=<json>]
	 * : Agent bundles to import in the sandbox, as a JSON list.
	 *
	 * [--inherit=<json>]
	 * : Connectors of this site that the session may use: {"connectors":["openai"]}.
	 *
	 * [--sandbox-session-id=<value>]
	 * : Id of the session; default a new one.
	 *
	 * [--orchestrator=<json>]
	 * : Correlation data; returned in the answer.
	 *
	 * [--playground=<json>]
	 * : Addresses of another engine than this plugin's own; this site must allow their origins.
	 *
	 * [--browser-runner=<json>]
	 * : Files of the script that runs the task in the sandbox, and the ability or hook that it calls.
	 *
	 * [--browser-plugins=<json>]
	 * : Further plugins to install: slugs, or allowed addresses with sha256, as a JSON list.
	 *
	 * [--runtime=<json>]
	 * : Code and files that the sandbox gets, as a JSON object.
	 *
	 * [--blueprint=<json>]
	 * : WordPress Playground blueprint that is applied at the start, as a JSON object.
	 *
	 * [--artifact-files=<json>]
	 * : Files that the sandbox gets below wp-content/uploads/wp-codebox/artifacts, as a JSON list.
	 *
	 * [--roots=<json>]
	 * : Plugins, themes and bundles of this site that the sandbox starts with, as a JSON list.
	 *
	 * [--landing-page=<value>]
	 * : Path that is shown first.
	 *
	 * [--preview-only]
	 * : Open WordPress only: no task, and no script that runs one.
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
