<?php
/**
 * Models in WP-CLI: flags, report, and options that only the operator may use.
 */

declare(strict_types=1);

use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$log = getenv( 'TEST_WORK' ) . '/request.json';
	$key = 'sk-cli-VALUE-' . bin2hex( random_bytes( 6 ) );
	delete_site_option( Settings::PROVIDERS );
	/** Runs `run-agent-task`; returns exit status, STDOUT, STDERR and the request that it sent to the extension. */
	$run = static function ( array $arguments, array $environment = [] ) use ( $t, $log ): array {
		copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', WP_PLUGIN_DIR . '/sample/sample.php' );
		is_file( $log ) && unlink( $log );
		$got = $t->wp( array_merge( [ 'codebox', 'run-agent-task', 'Fix it', '--plugin=sample' ], $arguments ), $environment + [ 'WP_CODEBOX_FAKE_REQUEST_LOG' => $log ] );
		return [ ...$got, is_file( $log ) ? json_decode( (string) file_get_contents( $log ), true ) : null ];
	};
	$t->test(
		'model flags reach the request, and the report shows model, usage and cost',
		static function () use ( $t, $run, $key ): void {
			[ $code, $out, $err, $request ] = $run( [ '--provider=openai', '--model=some-model', '--max-turns=5', '--max-cost=0.25', '--budget={"input_tokens":1000}', '--allowed-tools=workspace.read,tests.run' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( 0, $code, $err );
			$t->contains( 'Model:     openai some-model: 12 turns, 34,000 tokens in, 2,100 out, $0.03', $out );
			$t->same( [ 'kind' => 'model', 'budget' => [ 'input_tokens' => 1000, 'turns' => 5, 'cost_microusd' => 250000 ] ], $request['agent'] );
			$t->same( [ [ 'workspace.read', 'tests.run' ], $key ], [ $request['task_input']['allowed_tools'], $request['secrets'][0]['value'] ] );
			$t->true( ! str_contains( $out . $err, $key ), 'the value is printed' );
			$typed = $run( [ '--provider=openai', '--model=m', '--input-json={"find_renames":"true","max_turns":"7"}' ], [ 'OPENAI_API_KEY' => $key ] )[3];
			$t->same( [ true, 7 ], [ $typed['find_renames'] ?? null, $typed['agent']['budget']['turns'] ?? null ], 'values passed as text are converted' );
			[ $code, $out, $err ] = $run( [ '--provider=openai', '--model=m', '--format=json' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, 'm', 12 ], [ $code, ( $run_data = json_decode( $out, true ) )['run_metadata']['model'] ?? null, $run_data['run_metadata']['usage']['turns'] ?? null ], $err );
		}
	);
	$t->test(
		'a model address given by the operator gets no key of this site, only one passed with --secret-env',
		static function () use ( $t, $run, $key ): void {
			$there               = [ '--base-url=http://127.0.0.1:11434/v1', '--model=m' ];
			[ $code, , $err, $request ] = $run( $there, [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, 'openai-compatible', 'http://127.0.0.1:11434/v1', false ], [ $code, $request['model']['provider'] ?? null, $request['model']['base_url'] ?? null, isset( $request['secrets'] ) ], $err );
			[ $code, , $err, $request ] = $run( [ ...$there, '--provider=openai' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, 'openai', false ], [ $code, $request['model']['provider'] ?? null, isset( $request['secrets'] ) ], $err );
			// The operator's address does not get an inherited key either; only the provider's own address does.
			$inherit                    = '--inherit={"connectors":["openai"]}';
			[ $code, , $err, $request ] = $run( [ ...$there, '--provider=openai', $inherit ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, false ], [ $code, isset( $request['model']['secret'] ) ], $err );
			[ $code, , $err, $request ] = $run( [ '--model=m', $inherit ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, 'OPENAI_API_KEY', 'https://api.openai.com/v1' ], [ $code, $request['model']['secret'] ?? null, $request['model']['base_url'] ?? null ], $err );
			[ $code, , $err, $request ] = $run( [ ...$there, '--provider=openai', '--secret-env=OPENAI_API_KEY' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, $key, 'OPENAI_API_KEY' ], [ $code, $request['secrets'][0]['value'] ?? null, $request['model']['secret'] ?? null ], $err );
			[ $code, , $err, $request ] = $run( [ ...$there, '--secret-env=MODEL_API_KEY' ], [ 'MODEL_API_KEY' => $key ] );
			$t->same( [ 0, $key ], [ $code, $request['secrets'][0]['value'] ?? null ], $err );
			[ $code, , $err, $request ] = $run( [ '--input-json={"secret_env":["OPENAI_API_KEY"],"provider":"openai","model":"m"}' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 0, 'secret_env' ], [ $code, $request['provenance']['model']['credential']['source'] ?? null ], $err );
			// The same address is refused for a user.
			[ $code, $out, $err, $request ] = $run( [ ...$there, '--user=admin' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( [ 126, '', null ], [ $code, $out, $request ] );
			$t->contains( '(wp_codebox_forbidden)', $err );
			[ $code, , $err ] = $run( [ '--provider=openai', '--model=m', '--user=admin' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( 0, $code, $err );
			// Only the operator may pass environment variables as secrets; a user may not.
			[ $code, , $err ] = $run( [ '--input-json={"secret_env":["HOME"]}', '--provider=openai', '--model=m', '--user=admin' ], [ 'OPENAI_API_KEY' => $key ] );
			$t->same( 1, $code, $err );
			$t->contains( '(wp_codebox_secret_invalid)', $err );
		}
	);
	$bad = [
		'a provider without a key'          => [ [ '--provider=anthropic', '--model=m' ], 126, 'wp_codebox_provider_credentials_unavailable' ],
		'a provider without a model'        => [ [ '--provider=openai' ], 1, 'wp_codebox_model_missing' ],
		'an unknown provider'               => [ [ '--provider=nobody', '--model=m' ], 1, 'wp_codebox_model_invalid' ],
		'an unknown connector'              => [ [ '--model=m', '--inherit={"connectors":["nobody"]}' ], 126, 'wp_codebox_connector_credentials_unavailable' ],
		'a cost limit that is not a number' => [ [ '--provider=openai', '--model=m', '--max-cost=much' ], 1, 'wp_codebox_input_invalid' ],
		'a turn limit below 1'              => [ [ '--provider=openai', '--model=m', '--max-turns=0' ], 1, 'wp_codebox_input_invalid' ],
		'a flag that is not a JSON object'  => [ [ '--provider=openai', '--model=m', '--inherit=openai' ], 1, 'wp_codebox_input_invalid' ],
		'an unknown budget field'           => [ [ '--provider=openai', '--model=m', '--budget={"euros":1}' ], 1, 'wp_codebox_input_invalid' ],
		'two agents'                        => [ [ '--agent=built-in', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'a host command as tool dispatcher' => [ [ '--provider=openai', '--model=m', '--parent-tool-bridge={"allowed_tools":["a/b"],"dispatcher":{"mode":"host_command"}}' ], 1, 'wp_codebox_input_invalid' ],
	];
	foreach ( $bad as $name => [ $arguments, $status, $expected ] ) {
		$t->test(
			"a task is refused: $name",
			static function () use ( $t, $run, $key, $arguments, $status, $expected ): void {
				[ $code, $out, $err, $request ] = $run( $arguments, [ 'OPENAI_API_KEY' => $key ] );
				$t->same( [ $status, '', null ], [ $code, $out, $request ], $err );
				$t->same( 1, preg_match( '/^Error: [^\n]+ \(' . $expected . '\)$/m', $err ), $err );
				$t->true( ! str_contains( $err, $key ), 'the value is printed' );
			}
		);
	}
};
