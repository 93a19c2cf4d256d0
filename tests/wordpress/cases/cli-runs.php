<?php
/**
 * `wp codebox run-agent-task`: output, exit status, flags.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$fresh    = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
	};
	$fixtures = getenv( 'TEST_FIXTURES' );
	$agent    = "php $fixtures/agent.php";
	$task     = static fn( string $what, string ...$more ): array => array_merge( [ 'codebox', 'run-agent-task', 'Fix it', '--plugin=sample', "--agent-command=$agent $what" ], $more );
	// Replaces ids, times and sizes, which differ between runs, by placeholders.
	$plain    = static fn( string $text ): string => (string) preg_replace(
		[ '/run_[0-9a-f]{32}/', '/artifact-bundle-sha256-[0-9a-f]{64}/', '/[0-9.,]+ (ms|s) wall, [0-9.,]+ (ms|s) CPU, [0-9.,]+ MiB peak/', '/^(Isolation: ).*$/m', '/^(Outcome: +[a-z_]+\. ).*$/m' ],
		[ 'RUN', 'ARTIFACT', 'COST', '$1…', '$1…' ],
		$text
	);

	$t->test(
		'run-agent-task reports outcome, files, checks, cost and the commands to run next',
		static function () use ( $t, $task, $fresh, $plain, $fixtures ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp( $task( 'fix', "--check=php $fixtures/check.php" ) );
			$t->same( 0, $code, $err );
			$expected = <<<'TEXT'
			Outcome:   succeeded. …
			Isolation: …
			Files:     2 changed, +2 -2
			           M /wordpress/wp-content/plugins/sample/inc/more.php (+1 -1)
			           M /wordpress/wp-content/plugins/sample/sample.php (+1 -1)
			Checks:    1 of 1 passed, in a fresh sandbox
			           passed: php /run/codebox/staged/1-check.php
			Cost:      COST memory
			Bundle:    ARTIFACT
			Run:       RUN

			Nothing on this site was changed.

			Next:
			  wp codebox artifacts diff RUN
			  wp codebox artifacts apply RUN --all
			  wp codebox artifacts apply RUN --approved-files=/wordpress/wp-content/plugins/sample/inc/more.php
			  wp codebox artifacts discard RUN

			TEXT;
			$t->same( $expected, $plain( $out ) );
			$t->same( 1, preg_match( '/^Isolation: full; only the network access that the policy allows \(.*network namespace/m', $out ) );
			foreach ( [
				"The sandbox can read $fixtures/agent.php as /run/codebox/staged/0-agent.php.",
				"The sandbox can read $fixtures/check.php as /run/codebox/staged/1-check.php.",
				'agent | agent says fix',
				'agent ! [31mred[0m warning',
				'check 1 | hello',
				'Check 1 runs in a fresh sandbox.',
			] as $line ) {
				$t->contains( $line, $err );
			}
			$t->true( ! str_contains( $err, "\e" ), 'the output contains an escape character' );
			$t->contains( "'helo'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) );
		}
	);
	$t->test(
		'each run outcome has its exit status',
		static function () use ( $t, $task, $fresh, $fixtures ): void {
			$fresh();
			foreach ( [
				[ 0, 'no_op', $task( 'nothing' ) ],
				[ 1, 'failed', $task( 'fix-and-fail' ) ],
				[ 1, 'failed', $task( 'style' ) ],
				[ 0, 'succeeded', $task( 'style', '--agent-success-codes=0,1' ) ],
				[ 3, 'partial', $task( 'style', '--agent-success-codes=0,1', "--check=php $fixtures/check.php" ) ],
				[ 124, 'timed_out', $task( 'sleep', '--timeout=6s' ) ],
			] as [ $expected, $outcome, $command ] ) {
				[ $code, $out, $err ] = $t->wp( array_merge( $command, [ '--format=json' ] ) );
				$run                  = json_decode( $out, true );
				$t->same( [ $expected, $expected, $outcome ], [ $code, $run['exit_code'] ?? null, $run['run']['outcome'] ?? null ], $err );
			}
		}
	);
	$t->test(
		'the report of a failed run does not suggest to apply all files',
		static function () use ( $t, $task, $fresh ): void {
			$fresh();
			[ $code, $out ] = $t->wp( $task( 'fix-and-fail' ) );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_run_failed)', $out );
			$t->contains( ' --approved-files=/wordpress/wp-content/plugins/sample/inc/more.php', $out );
			$t->true( ! str_contains( $out, '--all' ), 'the report suggests --all' );
			[ , $out ] = $t->wp( $task( 'nothing' ) );
			$t->contains( 'Files:     none changed', $out );
			$t->true( ! str_contains( $out, 'Next:' ), 'the report suggests next commands' );
		}
	);
	$t->test(
		'every output format prints only data on STDOUT',
		static function () use ( $t, $task, $fresh ): void {
			$fresh();
			$t->same( 1, preg_match( '/^run_[0-9a-f]{32}\n$/', $t->wp( $task( 'fix', '--porcelain' ) )[1] ) );
			$t->same( 1, preg_match( '/^run_[0-9a-f]{32}\n$/', $t->wp( $task( 'fix', '--format=ids' ) )[1] ) );
			$t->same( '2', trim( $t->wp( $task( 'fix', '--format=count' ) )[1] ) );
			$t->same( "status,path\nmodified,/wordpress/wp-content/plugins/sample/inc/more.php\nmodified,/wordpress/wp-content/plugins/sample/sample.php\n", $t->wp( $task( 'fix', '--format=csv', '--fields=status,path' ) )[1] );
			$t->contains( 'schema: wp-codebox/agent-task-run/v1', $t->wp( $task( 'nothing', '--format=yaml' ) )[1] );
			$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/agent-task-run.v1.schema.json' ), true );
			$t->same( true, rest_validate_value_from_schema( json_decode( $t->wp( $task( 'fix', '--format=json' ) )[1], true ), $schema, 'run' ) );
			[ $code, $out, $err ] = $t->wp( $task( 'nothing', '--quiet' ) );
			$t->same( [ 0, '' ], [ $code, $err ] );
			$t->contains( 'Nothing on this site was changed.', $out );
		}
	);
	$t->test(
		'run-agent-task mounts the plugin that contains the current directory',
		static function () use ( $t, $fresh, $agent ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', "--agent-command=$agent fix", '--format=csv', '--fields=path' ], [], [ 'cwd' => WP_PLUGIN_DIR . '/sample/inc' ] );
			$t->same( [ 0, "path\n/wordpress/wp-content/plugins/sample/inc/more.php\n/wordpress/wp-content/plugins/sample/sample.php\n" ], [ $code, $out ], $err );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', "--agent-command=$agent fix" ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_mount_missing)', $err );
			$t->contains( 'sample', $err );
		}
	);
	$t->test(
		'task input is merged from file, JSON and flags, and flags take precedence',
		static function () use ( $t, $fresh, $agent ): void {
			$fresh();
			$file = getenv( 'TEST_WORK' ) . '/task.json';
			file_put_contents( $file, (string) json_encode( [ 'goal' => 'from file', 'plugin' => 'sample', 'agent_command' => 'php nothing', 'sandbox_session_id' => 'from-file' ] ) );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', "--input-file=$file", '--input-json={"goal":"from json"}', "--agent-command=$agent nothing", '--format=json', '--orchestrator={"id":"o"}' ] );
			$run                  = json_decode( $out, true );
			$t->same( [ 0, 'from json', 'from-file', 'o' ], [ $code, $run['task'] ?? null, $run['session']['id'] ?? null, $run['session']['orchestrator']['id'] ?? null ], $err );
			[ $code, $out ] = $t->wp( [ 'codebox', 'run-agent-task', '--input-file=-', "--agent-command=$agent nothing", '--format=json' ], [], [ 'stdin' => '{"goal":"from stdin","plugin":"sample"}' ] );
			$t->same( [ 0, 'from stdin' ], [ $code, json_decode( $out, true )['task'] ?? null ] );
		}
	);
	$t->test(
		'--mount takes a source, a target and a mode, and several mounts in one flag',
		static function () use ( $t, $fresh, $agent, $fixtures ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', "--mount=$fixtures/sample", "--agent-command=$agent fix", '--format=csv', '--fields=path' ] );
			$t->same( [ 0, "path\n/workspace/sample/inc/more.php\n/workspace/sample/sample.php\n" ], [ $code, $out ], $err );
			[ $code, $out ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', "--mount=$fixtures/sample:/workspace/other,$fixtures:/workspace/all:ro", "--agent-command=$agent fix", '--format=csv', '--fields=path' ] );
			$t->same( [ 0, "path\n/workspace/other/inc/more.php\n/workspace/other/sample.php\n" ], [ $code, $out ] );
			[ $code, $out ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--mount=' . WP_PLUGIN_DIR . '/sample', "--agent-command=$agent fix", '--format=csv', '--fields=path' ] );
			$t->contains( '/wordpress/wp-content/plugins/sample/sample.php', $out );
		}
	);
	if ( '1' !== getenv( 'WP_CODEBOX_FAKE' ) ) {
		$t->test(
			'the agent gets a placeholder for a secret, and no output contains the value',
			static function () use ( $t, $fresh ): void {
				$fresh();
				putenv( 'TEST_KEY=sesame-open-12345678' );
				[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--network=allowed.test', '--secret-env=TEST_KEY=allowed.test', '--agent-command=sh -c "echo key is $TEST_KEY"' ] );
				putenv( 'TEST_KEY' );
				$t->same( 0, $code, $err );
				$t->same( 1, preg_match( '/key is codebox_[0-9a-f]{40}$/m', $err ), $err );
				$t->true( ! str_contains( $out . $err, 'sesame-open' ), 'the value was shown' );
			}
		);
	}
	$bad = [
		'no goal'                           => [ [ '--plugin=sample', '--agent-command=true' ], 1, 'wp_codebox_task_missing' ],
		'two goals'                         => [ [ 'x', '--goal=y', '--plugin=sample' ], 1, 'wp_codebox_input_invalid' ],
		'a repeated flag'                   => [ [ 'x', '--plugin=sample', '--check=a', '--check=b', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'a list with an invalid entry'      => [ [ 'x', '--plugin=sample', '--check=[1]', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'an unknown field'                  => [ [ 'x', '--plugin=sample', '--input-json={"bin":"/bin/sh"}', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'an input file that does not exist' => [ [ 'x', '--input-file=/nowhere.json' ], 1, 'wp_codebox_input_invalid' ],
		'a timeout that is not a duration'  => [ [ 'x', '--plugin=sample', '--timeout=soon', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'a non-numeric success code'        => [ [ 'x', '--plugin=sample', '--agent-success-codes=a', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'a process limit that is too low'   => [ [ 'x', '--plugin=sample', '--processes=1', '--agent-command=true' ], 1, 'wp_codebox_limit_invalid' ],
		'raw PHP code'                      => [ [ 'x', '--plugin=sample', '--input-json={"code":"echo 1;"}', '--agent-command=true' ], 1, 'wp_codebox_raw_code_forbidden' ],
		'git history outside a work tree'   => [ [ 'x', '--plugin=sample', '--git=history', '--agent-command=true' ], 1, 'wp_codebox_git_unavailable' ],
		'an unknown value of --git'         => [ [ 'x', '--plugin=sample', '--git=clone', '--agent-command=true' ], 1, 'wp_codebox_input_invalid' ],
		'an unrestricted network'           => [ [ 'x', '--plugin=sample', '--network=allow', '--agent-command=true' ], 126, 'wp_codebox_policy_unenforceable' ],
		'a mount of the site'               => [ [ 'x', '--mount=' . ABSPATH, '--agent-command=true' ], 126, 'wp_codebox_mount_denied' ],
		'a mount that does not exist'       => [ [ 'x', '--mount=/nowhere/at/all', '--agent-command=true' ], 1, 'wp_codebox_mount_source_invalid' ],
		'no agent'                          => [ [ 'x', '--plugin=sample' ], 2, 'wp_codebox_agent_missing' ],
		'wp-config.php as agent program'    => [ [ 'x', '--plugin=sample', '--agent-command=php ' . ABSPATH . 'wp-config.php' ], 126, 'wp_codebox_mount_denied' ],
	];
	foreach ( $bad as $name => [ $arguments, $status, $expected ] ) {
		$t->test(
			"a task is refused: $name",
			static function () use ( $t, $arguments, $status, $expected ): void {
				[ $code, $out, $err ] = $t->wp( array_merge( [ 'codebox', 'run-agent-task' ], $arguments ) );
				$t->same( [ $status, '' ], [ $code, $out ], $err );
				$t->same( 1, preg_match( '/^Error: [^\n]+ \(' . $expected . '\)$/m', $err ), $err );
			}
		);
	}
	$t->test(
		'an unknown flag is refused with the fields that are similar',
		static function () use ( $t ): void {
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugins=sample' ] );
			$t->same( 1, $code );
			$t->contains( 'The input has no field "plugins". (wp_codebox_input_invalid)', $err );
			$t->contains( 'Similar fields: plugin', $err );
		}
	);
	$t->test(
		'host programs named in a command are staged, and files with secrets are refused',
		static function () use ( $t, $fresh, $agent ): void {
			$fresh();
			$home = getenv( 'TEST_WORK' ) . '/home';
			foreach ( [ '.env', 'server.pem', 'id_ed25519', '.ssh/config', 'tls.key', 'wp-config.bak.php' ] as $secret ) {
				wp_mkdir_p( dirname( "$home/$secret" ) );
				file_put_contents( "$home/$secret", 'secret' );
				[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', "--agent-command=$agent nothing $home/$secret" ] );
				$t->same( 126, $code, $secret );
				$t->contains( '(wp_codebox_mount_denied)', $err );
			}
			symlink( "$home/.env", "$home/innocent.php" );
			$t->same( 126, $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', "--agent-command=$agent nothing $home/innocent.php" ] )[0], 'a symbolic link to a secret was staged' );
			file_put_contents( "$home/it's a list.txt", 'x' );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', "--agent-command=$agent nothing \"$home/it's a list.txt\"" ] );
			$t->same( 0, $code, $err );
			$t->contains( '/run/codebox/staged/1-it_s_a_list.txt', $err );
		}
	);
	$t->test(
		'--user enforces the permissions of the ability',
		static function () use ( $t, $task, $fresh, $agent ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp( $task( 'nothing', '--user=editor' ) );
			$t->same( [ 126, '' ], [ $code, $out ] );
			$t->contains( '(wp_codebox_forbidden)', $err );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php agent.php nothing', '--user=admin' ] );
			$t->same( 0, $code, $err );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--mount=' . getenv( 'TEST_FIXTURES' ) . '/sample', '--agent-command=true', '--user=admin' ] );
			$t->same( 126, $code, 'a user may mount what only the operator may' );
			$t->contains( '(wp_codebox_mount_denied)', $err );
			[ , , $err ] = $t->wp( $task( 'nothing', '--user=admin' ) );
			$t->true( ! str_contains( $err, 'The sandbox can read' ), 'a user can stage files of the host' );
		}
	);
};
