<?php
/**
 * The built-in agent through the plugin with the real extension, supervisor and guest, and a model server
 * that answers from scripts.
 */

declare(strict_types=1);

use WPCodebox\Native\Extension;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$work    = getenv( 'TEST_WORK' ) . '/model-server';
	$key     = 'sk-native-VALUE-' . bin2hex( random_bytes( 12 ) );
	$call    = static fn( string $tool, array $arguments ): array => [
		'calls' => [
			[
				'tool' => $tool,
				'args' => (object) $arguments,
			],
		],
		'usage' => [ 'input' => 1000, 'output' => 100, 'cached' => 0 ],
	];
	$scripts = [
		'fix'    => [
			$call( 'workspace.edit', [ 'path' => 'sample.php', 'old_text' => 'helo', 'new_text' => 'hello' ] ),
			[ 'expect' => [ 'not_last' => 'must be in the file' ] ] + $call( 'task.finish', [ 'summary' => 'Mended the greeting.' ] ),
		],
		'preset' => [ [ 'text' => 'hello' ] ],
		'ticket' => [
			$call( 'native-host.read-ticket', [ 'id' => 7 ] ),
			[ 'expect' => [ 'last' => 'Ticket 7' ] ] + $call( 'task.finish', [ 'summary' => 'Read it.' ] ),
		],
	];
	$start   = static function () use ( $work, $key, $scripts ): array {
		is_dir( $work ) || mkdir( $work );
		// Removes the port file of an earlier server, because the test waits for a new one.
		is_file( "$work/port" ) && unlink( "$work/port" );
		foreach ( $scripts as $name => $steps ) {
			file_put_contents( "$work/$name.json", (string) json_encode( $steps ) );
		}
		$pipes   = [];
		$process = proc_open( [ 'python3', getenv( 'TEST_ROOT' ) . '/tests/model-server/server.py', '--script', $work, '--port', '0', '--port-file', "$work/port", '--log', "$work/log", '--key', $key ], [ [ 'file', '/dev/null', 'r' ], [ 'file', "$work/out", 'w' ], [ 'file', "$work/out", 'a' ] ], $pipes );
		for ( $tries = 0; $tries < 3000 && ! ( is_file( "$work/port" ) && '' !== trim( (string) file_get_contents( "$work/port" ) ) ); ++$tries ) {
			usleep( 20000 );
			clearstatcache();
		}
		return [ $process, trim( (string) file_get_contents( "$work/port" ) ) ];
	};
	$holds   = static function ( string $directory, string $needle ): array {
		$found = [];
		foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $directory, FilesystemIterator::SKIP_DOTS ) ) as $file ) {
			if ( $file->isFile() && str_contains( (string) file_get_contents( $file->getPathname() ), $needle ) ) {
				$found[] = $file->getPathname();
			}
		}
		return $found;
	};

	[ $server, $port ] = $start();
	$providers         = [];
	$ids = [ 'batch' => 'ticket', 'fanout' => 'ticket', 'cli-batch' => 'fix', 'cli-fanout' => 'fix' ] + array_fill_keys( [ 'spend-1', 'spend-2', 'spend-3', 'spend-4' ], 'fix' );
	foreach ( array_keys( $scripts ) as $name ) {
		$ids += [ "$name-chat" => $name, "$name-messages" => $name ];
	}
	// The model server plays a script once per address.
	foreach ( $ids as $id => $name ) {
		$api              = str_ends_with( $id, '-messages' ) ? 'anthropic-messages' : 'openai-chat';
		$providers[ $id ] = [ 'api' => $api, 'base_url' => "http://127.0.0.1:$port/$name/$id" . ( 'openai-chat' === $api ? '/v1' : '' ), 'key_env' => 'NATIVE_API_KEY', 'models' => [ 'scripted-1' ], 'prices' => [ 'input' => 3000000, 'output' => 15000000 ] ];
	}
	update_site_option( Settings::PROVIDERS, $providers );

	$t->test(
		'a model at a private address that the operator did not list is refused before a run starts',
		static function () use ( $t, $key, $port, $providers ): void {
			// The name localhost resolves to the listed address, but is not listed itself.
			update_site_option( Settings::PROVIDERS, $providers + [ 'near' => [ 'api' => 'openai-chat', 'base_url' => "http://localhost:$port/fix/near/v1" ] ] );
			$t->made( 'nothing' );
			$ask   = static fn( string $provider ): mixed => $t->ability( 'run-agent-task', [ 'goal' => 'Mend the greeting', 'plugin' => 'sample', 'provider' => $provider, 'model' => 'scripted-1', 'wait' => false ] );
			$error = $ask( 'near' );
			$t->error( 'wp_codebox_model_invalid', 400, $error );
			$t->contains( 'wp_codebox.private_models', $error->get_error_message() );
			update_site_option( Settings::PROVIDERS, $providers );
		}
	);
	foreach ( [ 'fix-chat', 'fix-messages' ] as $provider ) {
		$t->test(
			"the built-in agent fixes the sample plugin with the model of the site: $provider",
			static function () use ( $t, $key, $provider, $holds ): void {
				putenv( "NATIVE_API_KEY=$key" );
				$t->made( 'nothing' );
				$run = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Mend the greeting', 'plugin' => 'sample', 'provider' => $provider, 'checks' => [ 'php -l sample.php' ] ] ) );
				$t->same( [ 'succeeded', [ '/wordpress/wp-content/plugins/sample/sample.php' ] ], [ $run['run']['outcome'], array_column( $run['changed_files'], 'path' ) ], (string) json_encode( $run['error'] ?? $run['summary'] ) );
				$t->same( [ $provider, 'scripted-1', [ 'name' => 'NATIVE_API_KEY', 'status' => 'available', 'source' => 'env' ] ], [ $run['run_metadata']['provider'], $run['run_metadata']['model'], $run['run_metadata']['credential'] ] );
				$t->same( [ 2, 2000, 200, 9000 ], [ $run['run_metadata']['usage']['turns'], $run['run_metadata']['usage']['input_tokens'], $run['run_metadata']['usage']['output_tokens'], $run['run_metadata']['usage']['cost_microusd'] ] );
				$state = dirname( $run['artifacts'], 2 );
				$t->same( [], $holds( $state, $key ), 'the key is below the state directory' );
				$t->true( [] !== $holds( $state, 'NATIVE_API_KEY' ), 'positive control: the name is there' );
				$t->true( ! str_contains( (string) json_encode( [ $run, $t->audited( 50 ) ] ), $key ), 'the key is in the answer or in the log' );
			}
		);
	}
	$t->test(
		'a wrong key makes the outcome blocked, and the error does not contain the key',
		static function () use ( $t, $key ): void {
			$t->as( 'administrator' );
			putenv( 'NATIVE_API_KEY=wrong-' . $key );
			$run = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Mend the greeting', 'plugin' => 'sample', 'provider' => 'fix-chat' ] ) );
			$t->same( [ 'blocked', 'wp_codebox_provider_rejected', 3 ], [ $run['run']['outcome'], $run['error']['code'] ?? null, $run['exit_code'] ] );
			$t->true( ! str_contains( (string) json_encode( $run ), $key ), 'the key is in the answer' );
		}
	);
	$t->test(
		'a missing key is refused before a run starts',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$before = $t->ok( $t->ability( 'list-runs' ) )['total'];
			$t->error( 'wp_codebox_provider_credentials_unavailable', 403, $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'provider' => 'fix-chat' ] ) );
			$t->same( $before, $t->ok( $t->ability( 'list-runs' ) )['total'] );
		}
	);
	if ( ! wp_has_ability( 'native-host/read-ticket' ) ) {
		$current                        = $GLOBALS['wp_current_filter'];
		$GLOBALS['wp_current_filter'][] = 'wp_abilities_api_init';
		wp_register_ability(
			'native-host/read-ticket',
			[
				'label'               => 'Read a ticket',
				'description'         => 'Reads one ticket.',
				'category'            => 'wp-codebox',
				'input_schema'        => [ 'type' => 'object', 'properties' => [ 'id' => [ 'type' => 'integer' ] ], 'required' => [ 'id' ], 'additionalProperties' => false ],
				'permission_callback' => static fn(): bool => current_user_can( 'manage_options' ),
				'execute_callback'    => static fn( array $input ): array => [ 'title' => 'Ticket ' . $input['id'] ],
			]
		);
		$GLOBALS['wp_current_filter'] = $current;
	}
	foreach ( [ 'ticket-chat', 'ticket-messages' ] as $provider ) {
		$t->test(
			"the agent can call an ability of this site: $provider",
			static function () use ( $t, $key, $provider ): void {
				putenv( "NATIVE_API_KEY=$key" );
				$t->as( 'administrator' );
				$run = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Read the ticket', 'plugin' => 'sample', 'provider' => $provider, 'allowed_tools' => [ 'workspace.read', 'task.finish' ], 'parent_tool_bridge' => [ 'allowed_tools' => [ 'native-host/read-ticket' ] ] ] ) );
				$t->same( 'no_op', $run['run']['outcome'], (string) json_encode( $run['error'] ?? $run['summary'] ) );
				$t->same( [ 'parent-tool', 'native-host.read-ticket', 'success' ], array_values( array_intersect_key( $t->audited()[0], array_flip( [ 'event', 'tool', 'status' ] ) ) ) );
			}
		);
	}
	$t->test(
		'batch and fan-out give the shared model and tools to each task',
		static function () use ( $t, $key ): void {
			putenv( "NATIVE_API_KEY=$key" );
			$t->as( 'administrator' );
			$shared = [ 'plugin' => 'sample', 'allowed_tools' => [ 'workspace.read', 'task.finish' ], 'parent_tool_bridge' => [ 'allowed_tools' => [ 'native-host/read-ticket' ] ] ];
			$lent   = [ 'parent-tool', 'native-host.read-ticket', 'success' ];
			$tools  = static fn(): array => array_values( array_intersect_key( $t->audited()[0], array_flip( [ 'event', 'tool', 'status' ] ) ) );
			$batch  = $t->ok( $t->ability( 'run-agent-task-batch', $shared + [ 'provider' => 'batch', 'tasks' => [ [ 'goal' => 'Read it', 'provider' => 'nobody' ], 'Read the ticket' ] ] ) );
			$t->same( [ 'failed', 'wp_codebox_model_invalid', 'completed' ], [ $batch['runs'][0]['status'], $batch['runs'][0]['error']['code'], $batch['runs'][1]['status'] ], (string) json_encode( $batch['runs'] ) );
			$t->same( $lent, $tools() );
			$before = count( $t->audited( 500 ) );
			$fanout = $t->ok( $t->ability( 'run-agent-task-fanout', $shared + [ 'provider' => 'fanout', 'workers' => [ [ 'id' => 'a', 'goal' => 'Read the ticket' ] ] ] ) );
			$t->same( 1, $fanout['completed'], (string) json_encode( $fanout['runs'] ) );
			$t->same( [ true, $lent ], [ count( $t->audited( 500 ) ) > $before, $tools() ] );
		}
	);
	$t->test(
		'batch and fan-out in WP-CLI accept the model flags',
		static function () use ( $t, $key ): void {
			foreach ( [ [ 'run-agent-task-batch', '--tasks=["Mend the greeting"]', '--max-turns=3', '--provider=cli-batch' ], [ 'run-agent-task-fanout', '--workers=[{"id":"a","goal":"Mend the greeting"}]', '--max-cost=1', '--provider=cli-fanout' ] ] as $line ) {
				[ $code, $out, $err ] = $t->wp( [ 'codebox', ...$line, '--plugin=sample' ], [ 'NATIVE_API_KEY' => $key ] );
				$t->same( 0, $code, $err . $out );
			}
		}
	);
	$t->test(
		'in WP-CLI the operator can use another model address with a key passed by --secret-env',
		static function () use ( $t, $key, $port ): void {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', WP_PLUGIN_DIR . '/sample/sample.php' );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Mend the greeting', '--plugin=sample', "--base-url=http://127.0.0.1:$port/fix/cli/v1", '--model=scripted-1', '--secret-env=MODEL_API_KEY' ], [ 'MODEL_API_KEY' => $key ] );
			$t->same( 0, $code, $err . $out );
			$t->contains( 'Model:     openai-compatible scripted-1: 2 turns, 2,000 tokens in, 200 out', $out );
			$t->true( ! str_contains( $out . $err, $key ), 'the key is printed' );
		}
	);
	$t->test(
		'an agent preset in WP-CLI runs the program of the host with the model of the site, and gets no key',
		static function () use ( $t, $key, $holds ): void {
			$agents = getenv( 'TEST_WORK' ) . '/agents';
			$run    = static function () use ( $t, $key, $agents ): array {
				copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', WP_PLUGIN_DIR . '/sample/sample.php' );
				return $t->wp( [ 'codebox', 'run-agent-task', 'Mend the greeting', '--plugin=sample', '--agent=codex', '--provider=preset-chat', '--check=grep -q hello sample.php', '--format=json' ], [ 'NATIVE_API_KEY' => $key ], [ 'php_flags' => array_merge( $t->php_flags, [ '-d', "wp_codebox.agents_dir=$agents" ] ) ] );
			};
			is_dir( $agents ) || mkdir( $agents, 0755 );
			[ $code, , $err ] = $run();
			$t->same( 125, $code, $err );
			$t->contains( '(wp_codebox_agent_program_missing)', $err );
			mkdir( "$agents/codex/node_modules/.bin", 0755, true );
			copy( getenv( 'TEST_FIXTURES' ) . '/preset-agent.php', "$agents/codex/node_modules/.bin/codex" );
			chmod( "$agents/codex/node_modules/.bin/codex", 0755 );
			[ $code, $out, $err ] = $run();
			$answer               = json_decode( $out, true );
			$t->same( [ 0, 'succeeded', [ 'passed' ] ], [ $code, $answer['run']['outcome'] ?? $err, array_column( $answer['checks'] ?? [], 'status' ) ], $out . $err );
			$t->same( [ 'sample.php' ], array_column( $answer['changed_files'], 'relativePath' ) );
			$t->contains( 'The greeting is hello now.', (string) json_encode( $answer['agent_result'] ?? null ) );
			$t->same( [], $holds( dirname( $answer['artifacts'], 2 ), $key ), 'the key is below the state directory' );
			$t->true( ! str_contains( $out . $err, $key ), 'the key is printed' );
			$events = static fn( string ...$more ): string => $t->wp( [ 'codebox', 'runs', 'events', basename( $answer['artifacts'] ), '--follow', ...$more ] )[2];
			$shown  = $events();
			$t->contains( "agent | The greeting is hello now.\n", $shown );
			$t->true( ! str_contains( $shown, 'item.completed' ), 'a protocol line of the agent is shown' );
			$t->contains( 'agent | {"type":"item.completed"', $events( '--agent-output=raw' ) );
		}
	);
	$t->test(
		'a cap of model cost bounds the budgets of a month, and refuses runs at the cap or of unknown cost',
		static function () use ( $t, $key, $providers ): void {
			putenv( "NATIVE_API_KEY=$key" );
			$run   = static function ( string $provider, array $more = [] ) use ( $t ): mixed {
				copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', WP_PLUGIN_DIR . '/sample/sample.php' );
				return $t->ability( 'run-agent-task', $more + [ 'goal' => 'Mend the greeting', 'plugin' => 'sample', 'provider' => $provider ] );
			};
			$cap   = static fn( array $caps ): bool => update_site_option( ShareSettings::SPEND, $caps );
			$file  = static fn(): string => (string) current( (array) glob( Extension::info()['state_dir'] . '/sites/*/spend/*/spend.json' ) );
			$month = static fn(): array => json_decode( (string) file_get_contents( $file() ), true );
			$t->as( 'administrator' );
			$cap( [ 'requester_microusd' => 20000, 'site_microusd' => 50000 ] );
			// A run costs 9000; without a budget of its own it gets a tenth of the lowest cap.
			$part = $t->ok( $run( 'spend-1' ) );
			$t->same( [ 'partial', 'wp_codebox_budget_exhausted' ], [ $part['run']['outcome'], $part['error']['code'] ?? null ], (string) json_encode( $part['summary'] ) );
			$used = $month()['used_microusd']['user-1'];
			$t->same( [ true, [] ], [ $used < 20000, $month()['reserved'] ] );
			$t->same( 'succeeded', $t->ok( $run( 'spend-2', [ 'budget' => [ 'cost_usd' => 0.012 ] ] ) )['run']['outcome'] );
			$t->same( $used + 9000, $month()['used_microusd']['user-1'] );

			$before = $t->ok( $t->ability( 'list-runs' ) )['total'];
			$cap( [ 'requester_microusd' => $used + 9000 ] );
			$refused = $run( 'spend-3' );
			$t->error( 'wp_codebox_budget_exhausted', 507, $refused );
			$t->same( [ $used + 9000, $used + 9000 ], [ $refused->get_error_data()['used_microusd'], $refused->get_error_data()['cap_microusd'] ] );
			// The cap of one user does not stop another one; the cap of the site does.
			$may    = static fn( array $caps, string $name ): array => 'wp_codebox_run' === $name ? [ 'edit_posts' ] : $caps;
			$other  = static fn( string $provider ): mixed => $t->filtered(
				'map_meta_cap',
				$may,
				static function () use ( $t, $run, $provider ): mixed {
					$t->as( 'editor' );
					return $run( $provider, [ 'budget' => [ 'cost_usd' => 0.012 ] ] );
				}
			);
			$t->ok( $other( 'spend-3' ) );
			$cap( [ 'site_microusd' => $used + 9000 ] );
			$t->error( 'wp_codebox_budget_exhausted', 507, $other( 'spend-4' ) );

			$t->as( 'administrator' );
			$cap( [ 'site_microusd' => 10000000 ] );
			$good = (string) file_get_contents( $file() );
			file_put_contents( $file(), substr( $good, 1 ) );
			$t->error( 'wp_codebox_state_dir_invalid', 503, $run( 'spend-4' ) );
			file_put_contents( $file(), $good );
			// The cost of these cannot be counted.
			$agents = getenv( 'TEST_WORK' ) . '/agents';
			update_site_option( Settings::PROVIDERS, [ 'spend-4' => array_diff_key( $providers['spend-4'], [ 'prices' => 1 ] ) ] + $providers );
			$t->error( 'wp_codebox_budget_invalid', 400, $run( 'spend-4' ) );
			update_site_option( Settings::PROVIDERS, $providers );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Mend the greeting', '--plugin=sample', '--agent=codex', '--provider=preset-chat' ], [ 'NATIVE_API_KEY' => $key ], [ 'php_flags' => array_merge( $t->php_flags, [ '-d', "wp_codebox.agents_dir=$agents" ] ) ] );
			$t->same( 1, $code, $err );
			$t->contains( '(wp_codebox_budget_invalid)', $err );
			$t->same( $before + 1, $t->ok( $t->ability( 'list-runs' ) )['total'], 'a refused run is on record' );
			// Positive control: the same run with a record that can be read, and without a cap.
			$t->same( 'succeeded', $t->ok( $run( 'spend-4', [ 'budget' => [ 'cost_usd' => 0.012 ] ] ) )['run']['outcome'] );
			delete_site_option( ShareSettings::SPEND );
		}
	);
	$t->test(
		'cleanup: the model server got the expected requests and is stopped',
		static function () use ( $t, $server, $work ): void {
			proc_terminate( $server );
			proc_close( $server );
			$lines = array_map( static fn( string $line ): array => (array) json_decode( $line, true ), (array) file( "$work/log" ) );
			$t->true( count( $lines ) >= 10, 'the model server got too few requests' );
			$t->same( [], array_values( array_filter( array_column( $lines, 'mismatch' ) ) ) );
			delete_site_option( Settings::PROVIDERS );
			wp_unregister_ability( 'native-host/read-ticket' );
		}
	);
};
