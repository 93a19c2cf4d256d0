<?php
/**
 * Cases that need the real extension, supervisor and kernel.
 */

declare(strict_types=1);

use WPCodebox\Native\Artifacts;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$t->test(
		'the real extension is loaded and the stand-in is not',
		static function () use ( $t ): void {
			$t->same( [ true, false ], [ extension_loaded( 'wp_codebox' ), class_exists( 'WPCodebox\Native\Bundles', false ) ] );
		}
	);
	$t->test(
		'the audit log of these tests has an unbroken hash chain and contains no patch',
		static function () use ( $t ): void {
			$log = Artifacts::auditRecords( ( new Site( new InstalledCode() ) )->id(), 0, 1000 );
			$t->same( true, $log['chain']['valid'] );
			$t->true( count( $log['records'] ) > 5, 'the log is nearly empty' );
			$t->true( ! str_contains( (string) json_encode( $log ), 'diff --git' ), 'the log holds a patch' );
		}
	);
	$t->test(
		'the agent cannot read wp-config.php or write to the site, and the host process can read it',
		static function () use ( $t ): void {
			$config = ABSPATH . 'wp-config.php';
			$probe  = WP_PLUGIN_DIR . '/sample/probe.php';
			file_put_contents( $probe, '<?php echo @file_get_contents( $argv[1] ) ? "READ" : "denied", "\n"; @file_put_contents( $argv[2], "x" ); touch( "touched.txt" );' );
			$t->contains( 'READ', (string) shell_exec( escapeshellarg( PHP_BINARY ) . ' ' . escapeshellarg( $probe ) . ' ' . escapeshellarg( $config ) . ' /dev/null; rm -f touched.txt' ) );
			$t->as( 'administrator' );
			$target = ABSPATH . 'written-by-agent.txt';
			$run    = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Probe', 'plugin' => 'sample', 'agent_command' => "php probe.php $config $target" ] ) );
			unlink( $probe );
			$said = (string) file_get_contents( $run['artifacts'] . '/files/transcript.json' );
			$t->contains( 'denied', $said );
			$t->true( ! str_contains( $said, 'READ' ) && ! file_exists( $target ) && ! file_exists( WP_PLUGIN_DIR . '/sample/touched.txt' ), 'the agent read or wrote outside the sandbox' );
			$t->same( [ '/wordpress/wp-content/plugins/sample/touched.txt' ], array_column( $run['changed_files'], 'path' ) );
		}
	);
	$t->test(
		'a task with preview_hold_seconds answers the handle of its run with the link to the site in the sandbox',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$get    = static fn( string $url ): string => (string) file_get_contents( $url, false, stream_context_create( [ 'http' => [ 'ignore_errors' => true, 'timeout' => 30 ] ] ) );
			$task   = [ 'goal' => 'Show the site', 'plugin' => 'sample', 'agent_command' => 'touch shown.txt', 'preview_hold_seconds' => 600 ];
			$handle = $t->ok( $t->ability( 'run-agent-task', $task ) );
			// A busy machine may need longer for the work than the ability waits; the event of the run has the address, too.
			for ( $until = microtime( true ) + 60; ! isset( $handle['preview']['url'] ) && microtime( true ) < $until; usleep( 50000 ) ) {
				$found              = array_filter( array_column( $t->ok( $t->ability( 'list-run-events', [ 'run_id' => $handle['run_id'] ] ) )['events'], 'data' ), static fn( array $data ): bool => 'preview' === ( $data['type'] ?? '' ) );
				$handle['preview'] += (array) reset( $found );
			}
			$t->same( [ 'wp-codebox/run-handle/v1', 'running', 'token' ], [ $handle['schema'], $handle['status'], $handle['preview']['access'] ] );
			$t->contains( '127.0.0.1:', $handle['preview']['url'] );
			// The token becomes a cookie, which the request after the redirect sends.
			[ $link, $bare ] = [ $handle['preview']['url'] . '/?' . $handle['preview']['accessQuery'], $get( $handle['preview']['url'] . '/' ) ];
			$cookie          = static fn( string $url ): string => implode( '; ', array_map( static fn( string $line ): string => explode( ';', substr( $line, 12 ) )[0], preg_grep( '/^Set-Cookie: /i', (array) get_headers( $url, false, stream_context_create( [ 'http' => [ 'follow_location' => 0, 'ignore_errors' => true, 'timeout' => 30 ] ] ) ) ) ) );
			$t->true( ! str_contains( $bare, 'wp-content' ) && '' === $cookie( $handle['preview']['url'] . '/' ), 'a visitor without the token sees the site' );
			$shown = (string) file_get_contents( $handle['preview']['url'] . '/', false, stream_context_create( [ 'http' => [ 'header' => 'Cookie: ' . $cookie( $link ), 'timeout' => 30 ] ] ) );
			$t->contains( '</html>', $shown );
			$t->contains( 'wp-content', $shown );
			$read = $t->ok( $t->ability( 'get-run', [ 'run_id' => $handle['run_id'] ] ) );
			$t->same( [ 'running', 'open', $handle['preview']['url'] ], [ $read['run']['status'], $read['preview']['status'], $read['preview']['url'] ], 'get-run repeats the preview' );
			$t->ok( $t->ability( 'cancel-run', [ 'run_id' => $handle['run_id'] ] ) );
			$t->idle();
			$read = $t->ok( $t->ability( 'get-run', [ 'run_id' => $handle['run_id'] ] ) );
			$t->same( [ false, $handle['preview']['url'], $read['preview'] ], [ 'open' === $read['preview']['status'], $read['preview']['url'], $read['result']['preview'] ] );
			$plain = $t->ok( $t->ability( 'run-agent-task', [ 'preview_hold_seconds' => 0 ] + $task ) );
			$t->same( false, isset( $t->ok( $t->ability( 'get-run', [ 'run_id' => $plain['run']['run_id'] ] ) )['preview'] ), 'control: a run without a preview' );
			$place = wp_parse_url( $handle['preview']['url'] );
			$free  = stream_socket_server( "tcp://{$place['host']}:{$place['port']}" );
			$t->true( is_resource( $free ), 'the preview listens after the end of its run' );
			fclose( $free );
			// With an origin for visitors, the link has a token, and without the token the site is not shown.
			$handle = $t->ok( $t->ability( 'run-agent-task', [ 'wait' => false, 'preview_public_url' => 'https://preview.example.org' ] + $task ) );
			$t->same( [ 'pending', 'token', 'https://preview.example.org/?' . $handle['preview']['accessQuery'] ], [ $handle['preview']['status'], $handle['preview']['access'], $handle['preview_url'] ] );
			$t->ok( $t->ability( 'cancel-run', [ 'run_id' => $handle['run_id'] ] ) );
			$events = (string) wp_json_encode( $t->ok( $t->ability( 'list-run-events', [ 'run_id' => $handle['run_id'] ] ) ) );
			$events .= wp_json_encode( $t->ok( $t->ability( 'get-run', [ 'run_id' => $handle['run_id'] ] ) ) );
			$t->true( ! str_contains( $events, explode( '=', $handle['preview']['accessQuery'] )[1] ), 'an event or the run has the token' );
			// A batch waits for the end of the hold, so its row has the address of a preview that is over.
			$row = $t->ok( $t->ability( 'run-agent-task-batch', [ 'tasks' => [ [ 'preview_hold_seconds' => 1 ] + $task ] ] ) )['runs'][0];
			$t->same( [ true, true ], [ $row['success'], str_starts_with( $row['preview_url'], 'http://127.0.0.1:' ) ] );
			$t->same( $row['preview_url'], $row['session']['artifacts']['preview_url'] );
		}
	);
	$t->test(
		'code in the sandbox has a git repository only if the task asks for one',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$probe = WP_PLUGIN_DIR . '/sample/probe.php';
			file_put_contents( $probe, '<?php echo "git: ", trim( (string) shell_exec( "git log --format=%s 2>/dev/null; git -C /workspace/again log --format=%s 2>/dev/null | tr m M" ) ), ";";' );
			$again = [
				'source' => WP_PLUGIN_DIR . '/sample',
				'target' => '/workspace/again',
			];
			$seen  = static fn( array $more, array $mount = [] ): string => (string) file_get_contents( $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'mounts' => [ $again + $mount ], 'agent_command' => 'php probe.php' ] + $more ) )['artifacts'] . '/files/transcript.json' );
			// The site is in no git work tree, so the sandbox has a repository only on request.
			$t->contains( 'git: ;', $seen( [] ) );
			$t->contains( 'git: What was mounted;', $seen( [ 'git' => 'baseline' ], [ 'git' => 'none' ] ) );
			$t->contains( 'git: What was Mounted;', $seen( [ 'git' => 'none' ], [ 'git' => 'baseline' ] ) );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--git=baseline', '--agent-command=php probe.php' ] );
			unlink( $probe );
			$t->same( 0, $code, $err );
			$t->contains( 'git: What was mounted;', $err );
			$t->error( 'wp_codebox_git_unavailable', 400, $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'git' => 'history', 'agent_command' => 'true' ] ) );
		}
	);
	$t->test(
		'a plugin that does not work is repaired by the first command, which says what is wrong with it',
		static function () use ( $t ): void {
			$head   = "<?php\n/*\nPlugin Name: Broken\n%s*/\n";
			$plain  = sprintf( $head, '' );
			$broken = [
				$plain . "function broken( {\n"                                => 'syntax error',
				$plain . "no_such_function();\n"                               => 'Call to undefined function no_such_function()',
				$plain . "register_activation_hook( __FILE__, static fn() => throw new Exception( 'not ready' ) );\n" => 'not ready in broken.php:5',
				$plain . "register_activation_hook( __FILE__, static function () { die( 'no licence' ); } );\n" => 'PHP ended with exit code 0: no licence',
				$plain . "require __DIR__ . '/vendor/autoload.php';\n"         => 'run composer install',
				sprintf( $head, "Requires Plugins: shop\n" )                   => 'mount the required plugins too',
				sprintf( $head, "Requires PHP: 99.0\n" )                       => 'choose another PHP program',
				$plain . "while ( true ) {}\n"                                 => 'Maximum execution time of 15 seconds exceeded',
				$plain . "\$a = [];\nwhile ( true ) { \$a[] = str_repeat( 'x', 1 << 20 ); }\n" => 'Allowed memory size of 268435456 bytes exhausted',
				$plain . "echo 'debug';\n"                                     => '',
				$plain . "add_action( 'init', static function () { die( 'stop' ); } );\n" => '',
			];
			$place  = WP_PLUGIN_DIR . '/broken';
			mkdir( $place );
			file_put_contents( $place . '/fixed.txt', $plain . "function broken_ok() {}\n" );
			foreach ( $broken as $code => $why ) {
				file_put_contents( $place . '/broken.php', $code );
				[ $status, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Repair it', '--plugin=broken', '--agent-command=cp fixed.txt broken.php', '--check=wp plugin is-active broken' ] );
				$t->same( 0, $status, "$code\n$err" );
				$t->same( '' !== $why, str_contains( $err, 'The plugin broken/broken.php cannot be activated: ' ), "$code\n$err" );
				$t->contains( $why, $err );
				$t->same( '' !== $why, str_contains( $out, 'with the change, the plugin broken/broken.php can be activated' ), "$code\n$err" );
			}
			array_map( 'unlink', (array) glob( $place . '/*' ) );
			rmdir( $place );
		}
	);
	$agent = 'php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php ';
	$fresh = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
	};
	$t->test(
		'an extension with another contract digest is reported as stale',
		static function () use ( $t ): void {
			$manifest = WP_PLUGIN_DIR . '/wp-codebox/abilities/manifest.php';
			$text     = (string) file_get_contents( $manifest );
			file_put_contents( $manifest, preg_replace( "/'[0-9a-f]{64}'/", "'" . str_repeat( 'c', 64 ) . "'", $text ) );
			$stale = $t->wp( [ 'codebox', 'commands' ] );
			file_put_contents( $manifest, $text );
			$t->same( [ 125, '' ], [ $stale[0], $stale[1] ] );
			$t->contains( '(wp_codebox_extension_stale)', $stale[2] );
			$t->same( 0, $t->wp( [ 'codebox', 'commands' ] )[0], 'positive control' );
		}
	);
	$t->test(
		'Ctrl-C cancels the run, keeps the bundle and exits with 130',
		static function () use ( $t, $agent, $fresh ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp(
				[ 'codebox', 'run-agent-task', 'x', '--plugin=sample', "--agent-command={$agent}sleep", '--format=json' ],
				[],
				[
					'after'     => 'agent | agent says sleep',
					'meanwhile' => static fn( int $pid ): bool => posix_kill( $pid, SIGINT ),
				]
			);
			$run                  = json_decode( $out, true );
			$t->same( [ 130, 'cancelled', 'failed', false ], [ $code, $run['run']['outcome'] ?? null, $run['status'] ?? null, $run['success'] ?? null ], $err );
			$t->contains( 'Cancelling; the changes made so far are stored as a bundle.', $err );
			$t->true( is_dir( $run['artifacts'] ), 'the bundle is gone' );
		}
	);
	$t->test(
		'a bundle whose source changes during the run cannot be applied',
		static function () use ( $t, $agent, $fresh ): void {
			$fresh();
			$token           = bin2hex( random_bytes( 4 ) );
			[ , $out, $err ] = $t->wp(
				[ 'codebox', 'run-agent-task', 'x', '--plugin=sample', "--agent-command={$agent}told $token", '--format=json' ],
				[],
				[
					'after'     => 'agent | agent says told',
					'meanwhile' => static function () use ( $t, $token ): void {
						file_put_contents( WP_PLUGIN_DIR . '/sample/sample.php', "\n// changed meanwhile\n", FILE_APPEND );
						$t->wake( $token );
					},
				]
			);
			$run = json_decode( $out, true );
			$t->same( false, $run['approvable'] ?? null, $err );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'artifacts', 'apply', $run['run']['run_id'], '--all' ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_baseline_changed)', $err );
		}
	);
	$t->test(
		'an agent program that the guest does not have is an error with exit status 125',
		static function () use ( $t, $fresh ): void {
			$fresh();
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=no-such-program' ] );
			$t->same( 125, $code, $err );
			$t->contains( '(wp_codebox_agent_program_missing)', $err );
		}
	);
};
