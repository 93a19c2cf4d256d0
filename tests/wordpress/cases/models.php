<?php
/**
 * Selection of agent and model for a task.
 */

declare(strict_types=1);

use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$log   = getenv( 'TEST_WORK' ) . '/request.json';
	$key   = 'sk-models-VALUE-' . bin2hex( random_bytes( 6 ) );
	$clear = static function (): void {
		foreach ( [ Settings::AGENTS, Settings::DEFAULT_AGENT, Settings::PROVIDERS, Settings::DEFAULT_PROVIDER, Settings::DEFAULT_MODEL, Settings::INSTRUCTIONS ] as $option ) {
			delete_site_option( $option );
		}
		delete_option( 'connectors_ai_openai_api_key' );
	};
	/** Runs a task; returns the ability's result and the request that the plugin sent to the extension (null: none). */
	$run = static function ( array $input ) use ( $t, $log ): array {
		is_file( $log ) && unlink( $log );
		putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
		$t->made( 'nothing' );
		unlink( $log );
		$answer = $t->ability( 'run-agent-task', $input + [ 'goal' => 'Fix it', 'plugin' => 'sample' ] );
		putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
		return [ $answer, is_file( $log ) ? json_decode( (string) file_get_contents( $log ), true ) : null ];
	};

	$t->test(
		'the built-in agent gets model, key and budget, and the answer records the model',
		static function () use ( $t, $run, $key, $clear ): void {
			$clear();
			putenv( "OPENAI_API_KEY=$key" );
			[ $answer, $request ] = $run( [ 'provider' => 'openai', 'model' => 'some-model', 'max_turns' => 9, 'budget' => [ 'turns' => 20, 'input_tokens' => 1000, 'cost_usd' => 0.5 ] ] );
			$t->ok( $answer );
			$t->same( [ 'kind' => 'model', 'budget' => [ 'turns' => 9, 'input_tokens' => 1000, 'cost_microusd' => 500000 ] ], $request['agent'] );
			$t->same( [ 'provider' => 'openai', 'model' => 'some-model', 'api' => 'openai-chat', 'base_url' => 'https://api.openai.com/v1', 'secret' => 'OPENAI_API_KEY' ], $request['model'] );
			$t->same( [ [ 'env' => 'OPENAI_API_KEY', 'value' => $key, 'hosts' => [] ] ], $request['secrets'] );
			$t->true( ! isset( $request['policy'] ), 'the guest of the built-in agent has no network and needs no policy' );
			$record = [ 'provider' => 'openai', 'model' => 'some-model', 'credential' => [ 'name' => 'OPENAI_API_KEY', 'status' => 'available', 'source' => 'env' ] ];
			$t->same( $record, $request['provenance']['model'] );
			$t->same( $record, array_intersect_key( $answer['run_metadata'], $record ) );
			$t->same( [ 12, 34000, 2100, 30000 ], [ $answer['run_metadata']['usage']['turns'], $answer['run_metadata']['usage']['input_tokens'], $answer['run_metadata']['usage']['output_tokens'], $answer['run_metadata']['usage']['cost_microusd'] ] );
			$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/agent-task-run.v1.schema.json' ), true );
			$t->same( true, rest_validate_value_from_schema( $answer, $schema, 'run' ) );
			// Later, the ability get-run returns the same metadata from the record of the run.
			$later = $t->ok( $t->ability( 'get-run', [ 'run_id' => $answer['run']['run_id'] ] ) );
			$t->same( $record, array_intersect_key( $later['result']['run_metadata'], $record ) );
		}
	);
	$t->test(
		'a task without agent gets the default agent, else the built-in one if a model is set, else an error',
		static function () use ( $t, $run, $key, $clear ): void {
			$clear();
			putenv( "OPENAI_API_KEY=$key" );
			[ $error, $request ] = $run( [] );
			$t->error( 'wp_codebox_agent_missing', 400, $error );
			$t->same( [ 3, null ], [ count( $error->get_error_data()['hints'] ), $request ] );
			update_site_option( Settings::DEFAULT_MODEL, 'some-model' );
			// openai is the only connector with a key, so it is chosen.
			$t->same( [ 'model', 'openai', 'some-model' ], [ ( $got = $run( [] )[1] )['agent']['kind'], $got['model']['provider'], $got['model']['model'] ] );
			update_site_option( Settings::DEFAULT_PROVIDER, 'anthropic' );
			putenv( "ANTHROPIC_API_KEY=$key-2" );
			$t->same( [ 'anthropic', 'anthropic-messages', 'ANTHROPIC_API_KEY' ], [ ( $got = $run( [] )[1] )['model']['provider'], $got['model']['api'], $got['model']['secret'] ] );
			update_site_option( Settings::AGENTS, [ 'fixer' => [ 'command' => 'php agent.php fix' ] ] );
			update_site_option( Settings::DEFAULT_AGENT, 'fixer' );
			$got = $run( [] )[1];
			$t->same( [ [ 'php', 'agent.php', 'fix' ], false, false ], [ $got['agent']['argv'], isset( $got['model'] ), isset( $got['secrets'] ) ] );
			$t->same( 'model', $run( [ 'agent' => 'built-in' ] )[1]['agent']['kind'] );
			update_site_option( Settings::INSTRUCTIONS, 'Use tabs.' );
			$t->same( [ 'kind' => 'model', 'instructions' => 'Use tabs.' ], $run( [ 'agent' => 'built-in' ] )[1]['agent'] );
			$clear();
		}
	);
	$t->test(
		'an unknown or missing model, agent or budget is refused before a run starts',
		static function () use ( $t, $run, $key, $clear ): void {
			$clear();
			putenv( "OPENAI_API_KEY=$key" );
			putenv( "ANTHROPIC_API_KEY=$key" );
			foreach ( [
				[ [ 'agent' => 'built-in' ], 'wp_codebox_model_missing' ],
				[ [ 'provider' => 'openai' ], 'wp_codebox_model_missing' ],
				[ [ 'provider' => 'nobody', 'model' => 'm' ], 'wp_codebox_model_invalid' ],
				// Two connectors have a key, so no provider is chosen.
				[ [ 'model' => 'm' ], 'wp_codebox_model_missing' ],
				[ [ 'provider' => 'openai-compatible', 'model' => 'm' ], 'wp_codebox_model_invalid' ],
				[ [ 'agent' => 'nobody' ], 'wp_codebox_agent_missing' ],
				[ [ 'agent_command' => 'php agent.php nothing', 'max_turns' => 3 ], 'wp_codebox_input_invalid' ],
				[ [ 'agent' => 'codex', 'budget' => [ 'turns' => 3 ] ], 'wp_codebox_input_invalid' ],
				[ [ 'agent' => 'codex', 'agent_env' => [ 'A' => 'b' ] ], 'wp_codebox_input_invalid' ],
				[ [ 'agent' => 'built-in', 'provider' => 'openai', 'model' => 'm', 'agent_success_codes' => [ 1 ] ], 'wp_codebox_input_invalid' ],
				[ [ 'provider' => 'openai', 'model' => 'm', 'budget' => [ 'cost_usd' => 0 ] ], 'wp_codebox_budget_invalid' ],
			] as [ $input, $code ] ) {
				[ $error, $request ] = $run( $input );
				$t->error( $code, 400, $error );
				$t->same( null, $request, (string) json_encode( $input ) );
			}
			$t->ok( $run( [ 'provider' => 'openai', 'model' => 'm' ] )[0] );
		}
	);
	$t->test(
		'a provider of the settings sets address, key, models and prices',
		static function () use ( $t, $run, $key, $clear ): void {
			$clear();
			update_site_option(
				Settings::PROVIDERS,
				[
					'local' => [ 'api' => 'openai-chat', 'base_url' => 'http://127.0.0.1:11434/v1', 'models' => [ 'first', 'second' ], 'context_tokens' => 32000, 'max_output_tokens' => 4000, 'prices' => [ 'input' => 1, 'output' => 2 ] ],
					'keyed' => [ 'api' => 'anthropic-messages', 'base_url' => 'https://models.example', 'key_env' => 'KEYED_API_KEY' ],
				]
			);
			$got = $run( [ 'provider' => 'local' ] )[1];
			$t->same( [ 'provider' => 'local', 'model' => 'first', 'api' => 'openai-chat', 'base_url' => 'http://127.0.0.1:11434/v1', 'context_tokens' => 32000, 'max_output_tokens' => 4000, 'prices' => [ 'input' => 1, 'output' => 2 ], 'private' => true ], $got['model'] );
			$t->same( [ false, [ 'status' => 'not-required' ] ], [ isset( $got['secrets'] ), $got['provenance']['model']['credential'] ] );
			$t->same( 'second', $run( [ 'provider' => 'local', 'model' => 'second' ] )[1]['model']['model'] );
			$t->error( 'wp_codebox_model_invalid', 400, $run( [ 'provider' => 'local', 'model' => 'third' ] )[0] );
			$t->error( 'wp_codebox_provider_credentials_unavailable', 403, $run( [ 'provider' => 'keyed', 'model' => 'm' ] )[0] );
			putenv( "KEYED_API_KEY=$key" );
			$t->same( [ $key, 'KEYED_API_KEY' ], [ ( $got = $run( [ 'provider' => 'keyed', 'model' => 'm' ] )[1] )['secrets'][0]['value'], $got['model']['secret'] ] );
			// A row for a built-in provider adds fields and does not change its address.
			putenv( "OPENAI_API_KEY=$key" );
			update_site_option( Settings::PROVIDERS, [ 'openai' => [ 'models' => [ 'ours' ], 'prices' => [ 'input' => 5, 'output' => 6 ] ] ] );
			$t->same( [ 'openai', 'ours', 'https://api.openai.com/v1', [ 'input' => 5, 'output' => 6 ] ], [ ( $got = $run( [ 'provider' => 'openai' ] )[1] )['model']['provider'], $got['model']['model'], $got['model']['base_url'], $got['model']['prices'] ] );
			// An invalid row that bypassed the settings, as after a database import.
			$imported = static fn(): array => [ 'bad' => [ 'api' => 'soap', 'base_url' => 'https://x.example' ] ];
			$t->filtered( 'pre_site_option_wp_codebox_providers', $imported, static fn() => $t->error( 'wp_codebox_model_invalid', 400, $run( [ 'provider' => 'bad', 'model' => 'm' ] )[0] ) );
			$clear();
		}
	);
	$t->test(
		'a model address is marked private only if the operator listed it',
		static function () use ( $t, $run, $clear ): void {
			$clear();
			foreach ( [
				'http://127.0.0.1:11434/v1'   => true,
				'https://127.0.0.1'           => true,
				'http://GPU.internal:8080/v1' => true,
				'http://gpu.internal:9090/v1' => false,
				'http://gpu.internal'         => false,
				'https://127.0.0.2'           => false,
				'http://localhost:11434/v1'   => false,
				'https://gpu.internal.example:8080' => false,
			] as $address => $private ) {
				update_site_option( Settings::PROVIDERS, [ 'near' => [ 'api' => 'openai-chat', 'base_url' => $address ] ] );
				$got = $run( [ 'provider' => 'near', 'model' => 'm' ] )[1]['model'];
				$t->same( [ $address, $private ? true : null ], [ $got['base_url'], $got['private'] ?? null ] );
			}
			$clear();
		}
	);
	$t->test(
		'a task may name only the configured base URL of its provider',
		static function () use ( $t, $run, $key, $clear ): void {
			$clear();
			putenv( "OPENAI_API_KEY=$key" );
			update_site_option( Settings::PROVIDERS, [ 'local' => [ 'api' => 'openai-chat', 'base_url' => 'http://127.0.0.1:11434/v1' ] ] );
			foreach ( [
				[ 'provider' => 'openai', 'base_url' => 'https://evil.example/v1' ],
				[ 'base_url' => 'https://evil.example/v1' ],
				[ 'base_url' => 'http://169.254.169.254/latest' ],
				[ 'provider' => 'openai-compatible', 'base_url' => 'http://127.0.0.1:22' ],
				// The address belongs to another provider, which would get the key.
				[ 'provider' => 'openai', 'base_url' => 'http://127.0.0.1:11434/v1' ],
			] as $input ) {
				[ $error, $request ] = $run( $input + [ 'model' => 'm' ] );
				$t->error( 'wp_codebox_forbidden', 403, $error );
				$t->same( null, $request );
			}
			$t->same( 'openai', $run( [ 'provider' => 'openai', 'base_url' => 'https://api.openai.com/v1/', 'model' => 'm' ] )[1]['model']['provider'] );
			$t->same( 'local', $run( [ 'base_url' => 'http://127.0.0.1:11434/v1', 'model' => 'm' ] )[1]['model']['provider'] );
			$clear();
		}
	);
	$t->test(
		'presets and commands reach the model through the bridge, unless the task denies the network',
		static function () use ( $t, $run, $key, $clear ): void {
			$clear();
			putenv( "OPENAI_API_KEY=$key" );
			$model = [ 'provider' => 'openai', 'model' => 'm' ];
			$got   = $run( $model + [ 'agent' => 'codex' ] )[1];
			$t->same( [ [ 'kind' => 'preset', 'name' => 'codex' ], [ 'presets' => [ 'model' ] ], 'none' ], [ $got['agent'], $got['policy']['network'], $got['policy']['secrets'] ] );
			$t->same( 'OPENAI_API_KEY', $got['model']['secret'] );
			$t->same( [ 'presets' => [ 'model' ] ], $run( $model + [ 'agent_command' => 'php agent.php nothing' ] )[1]['policy']['network'] );
			$got = $run( $model + [ 'agent' => 'codex', 'network' => 'deny' ] )[1];
			$t->same( 'deny', $got['policy']['network'] );
			$t->same( [ 'presets' => [ 'model' ] ], $run( $model + [ 'agent' => 'codex', 'network' => [ 'presets' => [ 'model' ] ] ] )[1]['policy']['network'] );
			// A command gets no default model, a preset does.
			update_site_option( Settings::DEFAULT_PROVIDER, 'openai' );
			update_site_option( Settings::DEFAULT_MODEL, 'm' );
			$got = $run( [ 'agent_command' => 'php agent.php nothing' ] )[1];
			$t->same( [ false, false, false ], [ isset( $got['model'] ), isset( $got['secrets'] ), isset( $got['policy'] ) ] );
			$t->same( 'm', $run( [ 'agent' => 'codex' ] )[1]['model']['model'] );
			$clear();
			$t->same( false, isset( $run( [ 'agent' => 'codex' ] )[1]['model'] ), 'a preset without a model is passed to the extension' );
		}
	);
};
