<?php
/**
 * The generated runner of a browser session.
 */

declare(strict_types=1);

use WPCodebox\Browser\RunnerSource;
use WPCodebox\Tests\BrowserAssets;
use WPCodebox\Tests\Harness;

require_once dirname( __DIR__ ) . '/browser.php';

return static function ( Harness $t ): void {
	$work = getenv( 'TEST_WORK' ) . '/runner-' . bin2hex( random_bytes( 4 ) );
	$read = static fn( string $text ): array => (array) json_decode( $text, true );
	/** Returns the steps of a new session by the path that they write. */
	$step = static function ( array $more = [] ) use ( $t ): array {
		return BrowserAssets::with(
			$t,
			static function () use ( $t, $more ): array {
				$session = $t->ok( $t->ability( 'create-browser-playground-session', $more + [ 'goal' => 'Do it' ] ) );
				$steps   = $t->ok( $t->ability( 'hydrate-browser-blueprint-ref', [ 'ref' => $session['blueprint_ref']['ref'] ] ) )['blueprint']['steps'];
				return [ $session, array_column( $steps, 'data', 'path' ) ];
			}
		);
	};
	/** Runs a script in a PHP of its own. */
	$php  = static function ( string $file ) use ( $t ): string {
		$pipes   = [];
		$process = proc_open( array_merge( [ PHP_BINARY ], $t->php_flags, [ $file ] ), [ 1 => [ 'pipe', 'w' ], 2 => [ 'file', '/dev/null', 'w' ] ], $pipes );
		$said    = (string) stream_get_contents( $pipes[1] );
		fclose( $pipes[1] );
		proc_close( $process );
		return $said;
	};

	$t->test(
		'browser runner: copied into a normal WordPress it does nothing and says so, even with the constant of other systems',
		static function () use ( $t, $work, $read, $step, $php ): void {
			mkdir( $work );
			[ $session, $files ] = $step( [ 'browser_runner' => [ 'invocation' => [ 'type' => 'task', 'hook' => 'codebox_test_ran' ] ] ] );
			$runner              = $files['/tmp/wp-codebox/runner.php'];
			$head                = "<?php\ndefine( 'WP_CODEBOX_BROWSER_PLAYGROUND_RUNNER', true );\n";
			file_put_contents( "$work/bare.php", $runner );
			file_put_contents( "$work/loaded.php", "<?php\n\$_SERVER['HTTP_HOST'] = 'localhost';\nrequire " . var_export( ABSPATH . 'wp-load.php', true ) . ";\nadd_filter( 'codebox_test_ran', static function () { touch( " . var_export( "$work/ran", true ) . " ); return 1; } );\nrequire " . var_export( "$work/bare.php", true ) . ";\n" );
			file_put_contents( "$work/claimed.php", $head . "require " . var_export( "$work/loaded.php", true ) . ";\n" );
			foreach ( [ 'bare', 'loaded', 'claimed' ] as $name ) {
				$said = $read( $php( "$work/$name.php" ) );
				$t->same( [ false, 'wp_codebox_browser_runner_not_playground', $session['session_id'] ], [ $said['success'] ?? null, $said['error']['code'] ?? null, $said['session_id'] ?? null ], $name );
				$t->same( [ 'browser-playground', 'disposable-playground', 'runtime-principal' ], [ $said['execution'], $said['execution_scope'], $said['permission_model'] ] );
			}
			$t->same( false, is_file( "$work/ran" ) );
			// Control: the same script does the task when its checks find what PHP in the browser has.
			$open = strtr(
				$runner,
				[
					'php_uname()'                              => "'Emscripten emscripten 4.0.19 #1 wasm32'",
					"extension_loaded( 'post_message_to_js' )" => 'true',
					"'/wordpress/' !== \$path"                 => 'false',
				]
			);
			$task = "$work/task.json";
			file_put_contents( $task, $files['/tmp/wp-codebox/task.json'] );
			file_put_contents( "$work/open.php", preg_replace_callback( "/base64_decode\( '([A-Za-z0-9+\/=]+)' \)/", static fn( array $found ): string => "base64_decode( '" . base64_encode( strtr( base64_decode( $found[1] ), [ '/tmp/wp-codebox/task.json' => $task, '/tmp/wp-codebox/result.json' => "$work/result.json" ] ) ) . "' )", $open ) );
			file_put_contents( "$work/inside.php", str_replace( 'bare.php', 'open.php', (string) file_get_contents( "$work/loaded.php" ) ) );
			$said = $read( $php( "$work/inside.php" ) );
			$t->same( [ true, 1 ], [ $said['success'] ?? null, $said['result'] ?? null ], (string) json_encode( $said ) );
			$t->same( [ true, $said ], [ is_file( "$work/ran" ), $read( (string) file_get_contents( "$work/result.json" ) ) ] );
			// Another session's task.
			unlink( "$work/ran" );
			file_put_contents( $task, str_replace( $session['session_id'], 'browser-session-of-another', $files['/tmp/wp-codebox/task.json'] ) );
			$said = $read( $php( "$work/inside.php" ) );
			$t->same( [ 'wp_codebox_browser_runner_principal_invalid', false ], [ $said['error']['code'] ?? null, is_file( "$work/ran" ) ] );
		}
	);
	$t->test(
		'browser runner: its principal binds client, workspace, runtime type and session, and no secret is in it',
		static function () use ( $t, $step ): void {
			[ $session, $files ] = $step( [ 'browser_runner' => [ 'task_path' => '/tmp/own/task.json', 'result_path' => '/tmp/own/result.json', 'capture_paths' => [ [ 'path' => 'wp-content/debug.log', 'max_bytes' => 10 ] ] ] ] );
			$t->same( [ 'wp-codebox-browser-runner', 'wp-codebox', [ 'runtime_type' => 'wordpress-playground', 'session_id' => $session['session_id'] ] ], [ $session['session']['principal']['client_id'], $session['session']['principal']['workspace_id'], $session['session']['principal']['audience'] ] );
			$t->same( [ '/tmp/own/result.json', '/wordpress/wp-content/debug.log' ], [ $session['session']['runner']['result_path'], $session['session']['runner']['capture_paths'][0]['path'] ] );
			$t->true( isset( $files['/tmp/own/task.json'] ), 'task' );
			$t->true( ! str_contains( implode( '', $files ), wp_salt( 'auth' ) ) && ! str_contains( RunnerSource::of( [] ), "defined( 'ABSPATH' ) || exit" ), 'salt' );
		}
	);
};
