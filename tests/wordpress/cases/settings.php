<?php
/**
 * Host settings: validation, the settings page and their effect on tasks.
 */

declare(strict_types=1);

use WPCodebox\Admin\SettingsForm;
use WPCodebox\Admin\SettingsPage;
use WPCodebox\Capabilities;
use WPCodebox\ExtensionGate;
use WPCodebox\Host\ArtifactsRoot;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SettingChecks;
use WPCodebox\Host\SettingRules;
use WPCodebox\Host\Site;
use WPCodebox\Native\Extension;
use WPCodebox\Run\TaskLimits;
use WPCodebox\Settings;
use WPCodebox\Failure;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	require_once ABSPATH . 'wp-admin/includes/admin.php';
	$settings = new Settings();
	$digest   = ( require WP_PLUGIN_DIR . '/wp-codebox/abilities/manifest.php' )['contract_digest'];
	$gate     = new ExtensionGate( \WPCodebox\VERSION, $digest );
	$rules    = new SettingRules( new SettingChecks( $settings, $gate ) );
	$site     = new Site( new InstalledCode() );
	$clear    = static function () use ( $rules ): void {
		global $wp_settings_errors;
		$wp_settings_errors = [];
		foreach ( $rules->options() as $option ) {
			delete_site_option( $option );
		}
	};
	/** Saves a value for a setting; returns the value as stored and the messages of the settings page. */
	$store = static function ( string $option, mixed $value ): array {
		global $wp_settings_errors;
		$wp_settings_errors = [];
		update_site_option( $option, $value );
		return [ get_site_option( $option ), array_column( get_settings_errors( $option ), 'message' ) ];
	};

	$t->test(
		'every accepted form of a setting is stored in its normalized form',
		static function () use ( $t, $store, $clear, $settings ): void {
			$clear();
			$mib = 1048576;
			foreach ( [
				[ Settings::AGENTS, [ [ 'name' => 'a', 'command' => ' php agent.php ', 'success_codes' => '0, 2' ], [ 'name' => '', 'command' => '' ] ], [ 'a' => [ 'command' => 'php agent.php', 'success_codes' => [ 0, 2 ] ] ] ],
				[ Settings::AGENTS, [ 'a' => [ 'command' => 'php agent.php' ], 'b' => [ 'command' => 'b', 'success_codes' => [ 3 ] ] ], [ 'a' => [ 'command' => 'php agent.php', 'success_codes' => [ 0 ] ], 'b' => [ 'command' => 'b', 'success_codes' => [ 3 ] ] ] ],
				[ Settings::DEFAULT_AGENT, 'b', 'b' ],
				[ Settings::DEFAULT_AGENT, 'built-in', 'built-in' ],
				[ Settings::DEFAULT_AGENT, 'b', 'b' ],
				[ Settings::PROVIDERS, '{"acme":{"api":"openai-chat","base_url":"http://models.example:8080/v1/","key_env":"ACME_KEY","connector":"","models":["a","b","a"],"prices":{"input":1,"output":2}}}', [ 'acme' => [ 'api' => 'openai-chat', 'base_url' => 'http://models.example:8080/v1', 'key_env' => 'ACME_KEY', 'models' => [ 'a', 'b' ], 'prices' => [ 'input' => 1, 'output' => 2 ] ] ] ],
				[ Settings::PROVIDERS, [ 'openai' => [ 'models' => [ 'm' ], 'prices' => [ 'input' => 1, 'output' => 2 ] ], 'own' => [ 'api' => 'openai-chat', 'base_url' => 'https://api.openai.com/v2', 'connector' => 'openai' ], 'acme' => [ 'api' => 'openai-chat', 'base_url' => 'https://models.example', 'key_env' => 'ACME_KEY' ] ], [ 'openai' => [ 'models' => [ 'm' ], 'prices' => [ 'input' => 1, 'output' => 2 ] ], 'own' => [ 'api' => 'openai-chat', 'base_url' => 'https://api.openai.com/v2', 'connector' => 'openai' ], 'acme' => [ 'api' => 'openai-chat', 'base_url' => 'https://models.example', 'key_env' => 'ACME_KEY' ] ] ],
				[ Settings::DEFAULT_PROVIDER, ' acme ', 'acme' ],
				[ Settings::INSTRUCTIONS, " Be brief.\r\nUse tabs. ", "Be brief.\nUse tabs." ],
				[ Settings::DEFAULT_MODEL, 'größe-1', 'größe-1' ],
				[ Settings::TRUSTED_KEYS, str_repeat( 'a', 64 ) . "\r\n" . str_repeat( 'b', 64 ) . "\n", [ str_repeat( 'a', 64 ), str_repeat( 'b', 64 ) ] ],
				[ Settings::TRUSTED_KEYS, [ str_repeat( 'A', 64 ), str_repeat( 'a', 64 ) ], [ str_repeat( 'a', 64 ) ] ],
				[ Settings::COMPONENT_CONTRACTS, '[{"slug":"a-plugin","path":"/x"}]', [ [ 'slug' => 'a-plugin', 'path' => '/x' ] ] ],
				[ Settings::LIMITS, [ 'defaults' => [ 'memory_mib' => '512', 'processes' => '' ], 'ceilings' => [ 'memory_mib' => '1024', 'wall_clock_seconds' => '60' ] ], [ 'defaults' => [ 'memory_bytes' => 512 * $mib ], 'ceilings' => [ 'memory_bytes' => 1024 * $mib, 'wall_clock_ms' => 60000 ] ] ],
				[ Settings::MAX_RUNS, '2', 2 ],
				[ Settings::RETENTION, [ 'max_age_days' => '2', 'max_mib' => '', 'artifacts_max_days' => '0' ], [ 'max_age_seconds' => 172800 ] ],
			] as [ $option, $value, $expected ] ) {
				$t->same( [ $expected, [] ], $store( $option, $value ), $option );
			}
			$t->same( [ 'b', 'acme', 'größe-1' ], [ $settings->default_agent(), $settings->default_provider(), $settings->default_model() ] );
			// A stored value passes the rules unchanged, because core sanitizes on every update.
			foreach ( [ Settings::AGENTS, Settings::PROVIDERS, Settings::INSTRUCTIONS, Settings::LIMITS, Settings::RETENTION, Settings::COMPONENT_CONTRACTS, Settings::TRUSTED_KEYS ] as $option ) {
				$stored = get_site_option( $option );
				$t->same( $stored, sanitize_option( $option, $stored ), $option );
			}
			$clear();
		}
	);
	$t->test(
		'an invalid setting is refused with one message, and the old value stays',
		static function () use ( $t, $store, $clear ): void {
			$clear();
			$good = [
				Settings::AGENTS              => [ 'a' => [ 'command' => 'x', 'success_codes' => [ 0 ] ] ],
				Settings::DEFAULT_AGENT       => 'a',
				Settings::PROVIDERS           => [ 'p' => [ 'api' => 'anthropic-messages', 'base_url' => 'https://models.example' ] ],
				Settings::DEFAULT_PROVIDER    => 'p',
				Settings::INSTRUCTIONS        => 'Be brief.',
				Settings::DEFAULT_MODEL       => 'm',
				Settings::TRUSTED_KEYS        => [ str_repeat( 'a', 64 ) ],
				Settings::COMPONENT_CONTRACTS => [ [ 'slug' => 's' ] ],
				Settings::LIMITS              => [ 'defaults' => [], 'ceilings' => [ 'processes' => 64 ] ],
				Settings::MAX_RUNS            => 1,
				Settings::RETENTION           => [ 'max_bytes' => 5 ],
			];
			foreach ( $good as $option => $value ) {
				$t->same( [ $value, [] ], $store( $option, $value ), $option );
			}
			foreach ( [
				[ Settings::AGENTS, 'text', 'must be an array' ],
				[ Settings::AGENTS, [ 'a b' => [ 'command' => 'x' ] ], 'cannot be the name' ],
				[ Settings::AGENTS, [ [ 'name' => '<b>', 'command' => 'x' ] ], 'cannot be the name' ],
				[ Settings::AGENTS, [ [ 'name' => 'a', 'command' => 'x' ], [ 'name' => 'a', 'command' => 'y' ] ], 'Two agents' ],
				[ Settings::AGENTS, [ [ 'name' => 'a', 'command' => '' ] ], 'no command line' ],
				[ Settings::AGENTS, [ [ 'name' => 'a', 'command' => 'native' === $t->phase ? 'x "y' : ' ' ] ], '' ],
				[ Settings::AGENTS, [ [ 'name' => 'a', 'command' => 'x', 'success_codes' => '256' ] ], 'from 0 to 255' ],
				[ Settings::AGENTS, [ [ 'name' => [ 'a' ], 'command' => [ 'x' ] ], 'x' ], 'must be an array' ],
				[ Settings::DEFAULT_AGENT, 'nobody', 'no agent "nobody"' ],
				[ Settings::DEFAULT_AGENT, [ 'a' ], 'one line' ],
				[ Settings::DEFAULT_PROVIDER, 'nobody', 'no model provider "nobody"' ],
				[ Settings::DEFAULT_PROVIDER, 'openai-compatible', 'could be the default' ],
				[ Settings::INSTRUCTIONS, "bell \x07", 'plain text' ],
				[ Settings::PROVIDERS, '{', 'JSON object' ],
				[ Settings::PROVIDERS, '[{"api":"openai-chat"}]', 'JSON object' ],
				[ Settings::PROVIDERS, [ 'A b' => [] ], 'cannot be the id' ],
				[ Settings::PROVIDERS, [ 'p' => 'text' ], 'must be an object' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'soap', 'base_url' => 'https://x.example' ] ], 'must be one of' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'ftp://x.example' ] ], 'http or https' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://user:pass@x.example' ] ], 'without user' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example/?key=1' ] ], 'query' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'api_key' => 'sk-1' ] ], 'no field "api_key"' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'key_env' => 'sk-abcdef' ] ], 'not the key itself' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'key_env' => 'DB_PASSWORD' ] ], 'wp_codebox.provider_keys' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'key_env' => 'AWS_SECRET_ACCESS_KEY' ] ], 'AWS_SECRET_ACCESS_KEY@host' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'key_env' => 'OPENAI_API_KEY' ] ], 'may not go to the base URL' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'key_env' => 'ACME_KEY' ] ], 'may not go to the base URL' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'connector' => 'openai' ] ], 'may not go to the base URL' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://api.openai.com.x.example', 'connector' => 'openai' ] ], 'may not go to the base URL' ],
				[ Settings::PROVIDERS, [ 'openai' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example' ] ], 'is built in' ],
				[ Settings::PROVIDERS, [ 'openai' => [ 'key_env' => 'ACME_KEY' ] ], 'is built in' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'models' => [ 1 ] ] ], 'list of names' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'context_tokens' => 0 ] ], 'whole number' ],
				[ Settings::PROVIDERS, [ 'p' => [ 'api' => 'openai-chat', 'base_url' => 'https://x.example', 'prices' => [ 'input' => 1 ] ] ], '"input" and "output"' ],
				[ Settings::DEFAULT_MODEL, "two\nlines", 'one line' ],
				[ Settings::DEFAULT_MODEL, str_repeat( 'x', 201 ), 'one line' ],
				[ Settings::TRUSTED_KEYS, "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA==\n", 'do not paste the key' ],
				[ Settings::TRUSTED_KEYS, [ [ 'x' ] ], 'do not paste the key' ],
				[ Settings::TRUSTED_KEYS, 'key-1', 'Trusted key 1 is not the id' ],
				[ Settings::TRUSTED_KEYS, str_repeat( 'a', 64 ) . "\n" . str_repeat( 'b', 63 ), 'Trusted key 2 is not the id' ],
				[ Settings::COMPONENT_CONTRACTS, '{', 'must be' ],
				[ Settings::COMPONENT_CONTRACTS, '[{"path":"/x"}]', 'must be a JSON list' ],
				[ Settings::LIMITS, [ 'ceilings' => [ 'memory_mib' => '-1' ] ], 'whole number' ],
				[ Settings::LIMITS, [ 'ceilings' => [ 'memory_mib' => '99999999999999999' ] ], 'whole number' ],
				[ Settings::LIMITS, [ 'ceilings' => [ 'memory' => '1' ] ], 'no setting "memory"' ],
				[ Settings::LIMITS, [ 'ceilings' => [ 'max_mib' => '1' ] ], 'no setting "max_mib"' ],
				[ Settings::LIMITS, [ 'ceilings' => [ 'processes' => '1' ] ], 'limits.processes' ],
				[ Settings::LIMITS, [ 'defaults' => [ 'processes' => 65 ], 'ceilings' => [ 'processes' => 64 ] ], 'above its ceiling' ],
				[ Settings::MAX_RUNS, '1.5', 'whole number' ],
				[ Settings::MAX_RUNS, '100000', 'host allows' ],
				[ Settings::RETENTION, [ 'max_mib' => 'much' ], 'whole number' ],
			] as [ $option, $value, $text ] ) {
				[ $stored, $said ] = $store( $option, $value );
				$t->same( $good[ $option ], $stored, $option . ' ' . (string) json_encode( $value ) );
				$t->same( 1, count( $said ), $option . ' ' . (string) json_encode( $value ) );
				$t->contains( $text, $said[0] );
			}
			$clear();
		}
	);
	$t->test(
		'the run limit of a site cannot exceed the run limit of the host',
		static function () use ( $t, $settings, $clear ): void {
			$host = Extension::info()['max_runs'] ?? null;
			$t->same( $host, $settings->host_max_runs() );
			$t->same( $host, $settings->max_runs() );
			global $wpdb;
			// Sets a value without the setting's validation, like a database import.
			add_filter( 'pre_site_option_wp_codebox_max_runs', static fn(): int => 999 );
			$t->same( $host ?? 999, $settings->max_runs() );
			remove_all_filters( 'pre_site_option_wp_codebox_max_runs' );
			$clear();
		}
	);
	$t->test(
		'a site with a run limit below that of the host refuses a run above it',
		static function () use ( $t, $store, $clear ): void {
			$clear();
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
			$t->as( 'administrator' );
			$task = static fn( string $what ): array => [ 'goal' => 'x', 'plugin' => 'sample', 'wait' => false, 'agent_command' => 'php agent.php ' . $what ];
			$store( Settings::MAX_RUNS, 1 );
			$first = $t->ok( $t->ability( 'run-agent-task', $task( 'sleep' ) ) );
			$t->error( 'wp_codebox_busy', 429, $t->ability( 'run-agent-task', $task( 'nothing' ) ) );
			$store( Settings::MAX_RUNS, 2 );
			$second = $t->ok( $t->ability( 'run-agent-task', $task( 'sleep' ) ) );
			foreach ( [ $first, $second ] as $run ) {
				$t->ok( $t->ability( 'cancel-run', [ 'run_id' => $run['run_id'] ] ) );
			}
			$t->idle();
			$clear();
			unlink( WP_PLUGIN_DIR . '/sample/agent.php' );
		}
	);
	$t->test(
		'a task limit above the ceiling of the site is refused, for users and for the operator',
		static function () use ( $t, $settings, $store, $clear ): void {
			$clear();
			$limits = new TaskLimits( $settings );
			$t->same( [], $limits->resolve( [] ), 'without settings the extension decides' );
			$t->same( [ 'wall_clock_ms' => 7000 ], $limits->resolve( [ 'task_timeout_seconds' => 7 ] ) );
			$store( Settings::LIMITS, [ 'defaults' => [ 'processes' => 32 ], 'ceilings' => [ 'processes' => 64, 'wall_clock_ms' => 5000 ] ] );
			$t->same( [ 'processes' => 32, 'wall_clock_ms' => 5000 ], $limits->resolve( [] ) );
			$t->same( [ 'processes' => 64, 'wall_clock_ms' => 100 ], $limits->resolve( [ 'limits' => [ 'processes' => 64, 'wall_clock_ms' => 100 ] ] ) );
			$refused = static function ( array $input ) use ( $limits ): string {
				try {
					$limits->resolve( $input );
				} catch ( Failure $failure ) {
					return $failure->error_code . ' ' . $failure->data['field'];
				}
				return 'let through';
			};
			$t->same( 'wp_codebox_limit_invalid processes', $refused( [ 'limits' => [ 'processes' => 65 ] ] ) );
			$t->same( 'wp_codebox_limit_invalid wall_clock_ms', $refused( [ 'task_timeout_seconds' => 6 ] ) );
			$t->same( 'let through', $refused( [ 'task_timeout_seconds' => 5 ] ) );
			$t->as( 'administrator' );
			$task = [
				'goal'          => 'x',
				'plugin'        => 'sample',
				'agent_command' => 'php -v',
				'limits'        => [ 'processes' => 65 ],
			];
			$t->error( 'wp_codebox_limit_invalid', 400, $t->ability( 'run-agent-task', $task ) );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php -v', '--processes=65' ] );
			$t->same( 1, $code );
			$t->contains( 'this site allows at most 64', $err );
			// A stored default above a newer ceiling is lowered to the ceiling.
			add_filter( 'pre_site_option_wp_codebox_limits', static fn(): array => [ 'defaults' => [ 'processes' => 500 ], 'ceilings' => [ 'processes' => 64 ] ] );
			$t->same( [ 'processes' => 64 ], $limits->resolve( [] ) );
			remove_all_filters( 'pre_site_option_wp_codebox_limits' );
			$clear();
		}
	);
	$t->test(
		'filters set agent, provider, model and components, and an invalid filter result is ignored',
		static function () use ( $t, $settings, $clear ): void {
			$clear();
			foreach ( [ 'default_agent', 'default_provider', 'default_model' ] as $name ) {
				$t->same( '', $settings->$name() );
				add_filter( 'wp_codebox_' . $name, static fn(): string => 'filtered' );
				$t->same( 'filtered', $settings->$name() );
				add_filter( 'wp_codebox_' . $name, static fn(): array => [ 'x' ] );
				$t->same( '', $settings->$name() );
				remove_all_filters( 'wp_codebox_' . $name );
			}
			$t->same( [], $settings->component_contracts() );
			add_filter( 'wp_codebox_component_contracts', static fn( array $rows ): array => array_merge( $rows, [ [ 'slug' => 'a', 'v' => 1 ], 'x', [ 'slug' => 'a', 'v' => 2 ] ] ) );
			$t->same( [ [ 'slug' => 'a', 'v' => 2 ] ], $settings->component_contracts() );
			remove_all_filters( 'wp_codebox_component_contracts' );
		}
	);
	$t->test(
		'the artifacts root filter accepts only a partition of the state directory, and only for reading',
		static function () use ( $t, $site ): void {
			$root  = new ArtifactsRoot( $site );
			$state = rtrim( Extension::info()['state_dir'], '/' );
			$t->same( $site->id(), $root->partition() );
			$given = null;
			add_filter(
				'wp_codebox_artifacts_root',
				static function ( string $own ) use ( &$given ): mixed {
					return is_callable( $given ) ? $given( $own ) : $given;
				}
			);
			$given = static fn( string $own ): string => $own;
			$t->same( $site->id(), $root->partition() );
			$given = $state . '/sites/site-9-abc/artifacts/';
			$t->same( 'site-9-abc', $root->partition() );
			$t->same( 0, WP_Codebox_API::list_artifacts()['total'] );
			foreach ( [ '/etc', str_pad( '/elsewhere', strlen( $state . '/sites' ), 'x' ) . '/site-1/artifacts', $state . '/sites/../x/artifacts', $state, $state . '/sites/../keys', $state . '/sites/x/runs', $state . '/sites/x/artifacts/y', $state . '/sites//artifacts', $state . "/sites/x/artifacts\n", '', null, [ 'x' ], ABSPATH ] as $bad ) {
				$given = $bad;
				$t->error( 'wp_codebox_artifact_outside_root', 403, WP_Codebox_API::list_artifacts() );
			}
			remove_all_filters( 'wp_codebox_artifacts_root' );
			$t->same( $site->id(), $root->partition() );
		}
	);
	$t->test(
		'gc takes ages and sizes from the settings, and flags take precedence',
		static function () use ( $t, $store, $clear ): void {
			$clear();
			if ( 'fake' !== $t->phase ) {
				$t->same( [], ( new Settings() )->retention() );
				return;
			}
			$store( Settings::RETENTION, [ 'max_age_seconds' => 77 ] );
			$bytes = static fn( array $flags ): int => json_decode( $t->wp( array_merge( [ 'codebox', 'gc', '--format=json' ], $flags ) )[1], true )['removed'][0]['bytes'];
			$t->same( 77, $bytes( [] ) );
			$t->same( 5, $bytes( [ '--max-age=5s' ] ) );
			$clear();
			$t->same( 0, $bytes( [] ) );
		}
	);
	$t->test(
		'REST exposes no setting of the plugin, not even its name',
		static function () use ( $t, $clear ): void {
			$clear();
			$t->as( 'administrator' );
			$answer = rest_do_request( new WP_REST_Request( 'GET', '/wp/v2/settings' ) );
			$t->same( 200, $answer->get_status() );
			$t->same( [], array_values( array_filter( array_keys( $answer->get_data() ), static fn( string $name ): bool => str_contains( $name, 'codebox' ) ) ) );
			$t->true( ! str_contains( (string) wp_json_encode( rest_do_request( new WP_REST_Request( 'GET', '/' ) )->get_data()['routes']['/wp/v2/settings'] ), 'codebox' ), 'the REST index names a setting' );
		}
	);
	$t->test(
		'settings page: fields have labels, values are escaped, help exists, and an editor has no access',
		static function () use ( $t, $settings, $gate, $rules, $store, $clear ): void {
			global $submenu, $wp_settings_fields, $wp_settings_sections;
			$clear();
			$t->as( 'administrator' );
			$store( Settings::AGENTS, [ 'evil' => [ 'command' => 'x "><script>alert(1)</script>"', 'success_codes' => [ 0 ] ] ] );
			$store( Settings::INSTRUCTIONS, 'Be brief.</textarea><script>alert(2)</script>' );
			// Stores the value without this plugin's validation, as another plugin could.
			$hook   = 'sanitize_option_' . Settings::COMPONENT_CONTRACTS;
			$checks = $GLOBALS['wp_filter'][ $hook ] ?? null;
			unset( $GLOBALS['wp_filter'][ $hook ] );
			$store( Settings::COMPONENT_CONTRACTS, [ [ 'slug' => 'evil', 'path' => '</textarea><script>alert(3)</script>' ] ] );
			if ( null !== $checks ) {
				$GLOBALS['wp_filter'][ $hook ] = $checks;
			}
			$store( Settings::LIMITS, [ 'ceilings' => [ 'wall_clock_ms' => 90500 ] ] );
			$page = new SettingsPage( new SettingsForm( $settings, $gate ), $rules );
			$page->add_page();
			$ours = array_values( array_filter( $submenu['options-general.php'] ?? [], static fn( array $row ): bool => SettingsPage::SLUG === $row[2] ) );
			$t->same( [ Capabilities::SETTINGS ], array_column( $ours, 1 ) );
			$t->same( [ true, true ], [ current_user_can( Capabilities::SETTINGS ), current_user_can( 'manage_options' ) ] );
			$t->same( Capabilities::SETTINGS, apply_filters( 'option_page_capability_wp-codebox', 'manage_options' ), 'the capability that options.php requires' );
			set_current_screen( 'settings_page_wp-codebox-settings' );
			$page->prepare();
			$t->same( [ 'wp-codebox-agents', 'wp-codebox-models', 'wp-codebox-callers', 'wp-codebox-limits', 'wp-codebox-retention' ], array_values( array_column( get_current_screen()->get_help_tabs(), 'id' ) ) );
			ob_start();
			$page->render();
			$html = (string) ob_get_clean();
			$t->true( ! str_contains( $html, '<script' ), 'a command line is not escaped in its attribute, or the instructions in their text field' );
			$t->contains( 'Be brief.&lt;/textarea&gt;&lt;script&gt;', $html );
			$t->contains( '&lt;/textarea&gt;&lt;script&gt;alert(3)', $html );
			$document = new DOMDocument();
			libxml_use_internal_errors( true );
			$document->loadHTML( '<?xml encoding="utf-8"?>' . $html );
			$path   = new DOMXPath( $document );
			$fields = 0;
			foreach ( $path->query( '//input[not(@type="hidden") and not(@type="submit")]|//select|//textarea' ) as $field ) {
				++$fields;
				$id      = $field->getAttribute( 'id' );
				$labeled = '' !== $field->getAttribute( 'aria-label' ) || $path->query( 'ancestor::label', $field )->length > 0 || ( '' !== $id && $path->query( "//label[@for='$id']" )->length > 0 );
				$t->true( $labeled, 'no label: ' . $field->getAttribute( 'name' ) );
				$about = $field->getAttribute( 'aria-describedby' );
				$t->true( '' === $about || 1 === $path->query( "//*[@id='$about']" )->length, "described by nothing: $about" );
			}
			$t->true( $fields > 20, "only $fields fields" );
			$t->same( 'x "><script>alert(1)</script>"', $path->query( '//input[@name="wp_codebox_agents[1][command]"]' )->item( 0 )->getAttribute( 'value' ) );
			$t->same( 1, $path->query( '//input[@name="_wpnonce"]' )->length );
			$shown = $path->query( '//input[@name="wp_codebox_limits[ceilings][wall_clock_seconds]"]' )->item( 0 )->getAttribute( 'value' );
			$t->same( '90', $shown );
			// Saving the rounded value that the page shows does not change the exact stored value.
			$t->same( [ 'wall_clock_ms' => 90500 ], $store( Settings::LIMITS, [ 'ceilings' => [ 'wall_clock_seconds' => $shown ] ] )[0]['ceilings'] );
			$t->as( 'editor' );
			$t->same( false, current_user_can( SettingsPage::capability() ) );
			$clear();
		}
	);
};
