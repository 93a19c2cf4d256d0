<?php
/**
 * Help tabs of the settings page.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WP_Screen;

defined( 'ABSPATH' ) || exit;

/**
 * Explains settings at more length than fits beside a field.
 */
final class SettingsHelp {

	/**
	 * Adds the help tabs to the settings page.
	 *
	 * @param WP_Screen|null $screen Screen of the settings page.
	 */
	public function add( ?WP_Screen $screen ): void {
		if ( null === $screen ) {
			return;
		}
		foreach ( $this->tabs() as $id => [ $title, $paragraphs ] ) {
			$screen->add_help_tab(
				[
					'id'      => 'wp-codebox-' . $id,
					'title'   => $title,
					'content' => implode( '', array_map( static fn( string $text ): string => '<p>' . esc_html( $text ) . '</p>', $paragraphs ) ),
				]
			);
		}
	}

	/**
	 * Returns title and paragraphs of each help tab by id.
	 *
	 * @return array<string, array{string, list<string>}>
	 */
	private function tabs(): array {
		return [
			'agents'    => [
				__( 'Agents', 'codebox' ),
				[
					__( 'An agent is a program that exists inside the sandbox, with its arguments. It is started without a shell. A task names an agent or gives a command line of its own.', 'codebox' ),
					__( 'Do not write a key or password into a command line: everybody who may change settings can read it. A plugin of this site hands secrets to a run through the filter wp_codebox_secret_values; the sandbox only sees a placeholder.', 'codebox' ),
				],
			],
			'models'    => [
				__( 'Models', 'codebox' ),
				[
					__( 'OpenAI, Anthropic and Google are built in. Their keys are those of the page Settings > Connectors, or of the environment variables and constants named on that page. A key is read when a task starts, goes to the address of its provider only, and is stored nowhere else.', 'codebox' ),
					/* translators: %s: example. */
					sprintf( __( 'To add a provider, enter its id and its fields, for example %s. Prices are millionths of a US dollar per million tokens; without them a task can have no budget in dollars.', 'codebox' ), '{"own":{"api":"openai-chat","base_url":"https://models.example/v1","key_env":"OWN_API_KEY","models":["qwen3-coder"],"prices":{"input":0,"output":0}}}' ),
					__( 'The operator says in php.ini which key goes to which host (wp_codebox.provider_keys = "OWN_API_KEY@models.example") and which models may be on this machine or in its private network (wp_codebox.private_models = "10.0.0.5:11434"); or in wp-config.php with the constants WP_CODEBOX_PROVIDER_KEYS (name to host) and WP_CODEBOX_PRIVATE_MODELS (list). The built-in providers keep their address and key; an entry with the id of one sets models, sizes and prices.', 'codebox' ),
					__( 'A task may name a provider and a model, never an address of its own; only the operator may, with "wp codebox run-agent-task --base-url". A plugin can restrict which users may use the keys of this site (filter wp_codebox_can_use_credentials).', 'codebox' ),
				],
			],
			'callers'   => [
				__( 'Trusted callers', 'codebox' ),
				[
					__( 'A program outside of this site may need only one thing from it: to send requests through a connector, or to import bundles. Give its user an application password (Users, Profile) and grant the scope here; the user needs no further rights.', 'codebox' ),
					__( 'No scope includes another one. A grant applies to requests made with this application password, not to the user, and ends when the password is revoked. What a request says about its caller is ignored. An imported bundle is trusted only for its signature, and applying it needs the capability to apply changes. Users who may run tasks or review bundles need no grant for what this right allows them anyway.', 'codebox' ),
				],
			],
			'limits'    => [
				__( 'Limits', 'codebox' ),
				[
					__( 'A task that asks for more than a ceiling is refused. A task that does not ask gets the default; without a default it gets the ceiling, and without both the built-in limit.', 'codebox' ),
					__( 'The value of "Runs at once" can only be lowered here. The host sets the maximum with wp_codebox.max_runs in php.ini.', 'codebox' ),
					__( '"Runs at once for one user" holds for each user who may not change these settings, and for programs that run without a user, such as cron. Empty is half of "Runs at once", so that one user cannot take the runs of all others.', 'codebox' ),
					__( 'A ceiling can be at most the limit of the operator (wp_codebox.max_limits in php.ini).', 'codebox' ),
					__( 'Model cost is what the built-in agent reports, by the prices of the provider. With a cap, a model without prices, and an agent program that uses a key of this site, are refused, because their cost is unknown. Requests of browser sandboxes through a connector are not counted, and neither are keys that a task brings itself.', 'codebox' ),
				],
			],
			'retention' => [
				__( 'Retention', 'codebox' ),
				[
					__( 'The command "wp codebox gc" removes what ended runs left. These values apply when the command is called without values of its own. Nothing is removed by visiting this site.', 'codebox' ),
					__( 'Bundles hold work that may not be applied yet, so they are kept unless you set an age for them.', 'codebox' ),
				],
			],
		];
	}
}
