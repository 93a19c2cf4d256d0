<?php
/**
 * `wp codebox run-agent-task --detach` and `wp codebox runs`.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$fake  = '1' === getenv( 'WP_CODEBOX_FAKE' );
	$fresh = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
	};
	$start = static fn( string $what, string ...$more ): array => $t->wp( array_merge( [ 'codebox', 'run-agent-task', "Do $what", '--plugin=sample', "--agent-command=php agent.php $what", '--detach' ], $more ) );
	$id    = static fn( string $what, string ...$more ): string => trim( $start( $what, '--porcelain', ...$more )[1] );
	$runs  = static fn( string ...$arguments ): array => $t->wp( [ 'codebox', 'runs', ...$arguments ] );
	// Follows a run whose agent continues only after the follower printed its first line.
	$follow = static fn( string $token, string $run, string ...$more ): array => $t->wp(
		[ 'codebox', 'runs', 'events', $run, '--follow', ...$more ],
		[],
		[
			'after'     => 'agent says told',
			'meanwhile' => static fn() => $t->wake( $token ),
		]
	);
	$plain  = static fn( string $text ): string => (string) preg_replace( [ '/run_[0-9a-f]{32}/', '/[0-9-]{10}T[0-9:.]+Z/' ], [ 'RUN', 'TIME' ], $text );

	$t->test(
		'--detach prints the commands that follow, show and cancel the run',
		static function () use ( $t, $fresh, $start, $runs, $follow, $plain ): void {
			$fresh();
			$token                = bin2hex( random_bytes( 4 ) );
			[ $code, $out, $err ] = $start( "told $token" );
			$t->same( 0, $code, $err );
			$expected = <<<'TEXT'
			Run:       RUN
			Status:    running, started TIME

			Nothing on this site was changed.

			Next:
			  wp codebox runs events RUN --follow
			  wp codebox runs get RUN
			  wp codebox runs cancel RUN

			TEXT;
			$t->same( $expected, $plain( $out ) );
			preg_match( '/run_[0-9a-f]{32}/', $out, $found );
			[ $code, $out, $err ] = $runs( 'get', substr( $found[0], 0, 16 ) );
			$t->same( 0, $code, $err );
			$t->contains( 'Goal:      Do told', $out );
			[ $code, $out, $err ] = $follow( $token, $found[0] );
			$t->same( 0, $code, $err );
			$t->contains( 'agent | agent says told', $err );
			$t->contains( 'Outcome:   succeeded.', $out );
			$t->contains( 'wp codebox artifacts apply ' . $found[0] . ' --all', $out );
			$t->same( $out, $runs( 'get', $found[0] )[1] );
			$t->same( [ 0, "succeeded\n" ], array_slice( $runs( 'get', $found[0], '--porcelain' ), 0, 2 ) );
		}
	);
	$t->test(
		'--detach prints the run id in every format, and wait false in the input does the same',
		static function () use ( $t, $fresh, $start, $runs ): void {
			$fresh();
			$t->same( 1, preg_match( '/^run_[0-9a-f]{32}\n$/', $start( 'nothing', '--porcelain' )[1] ) );
			$handle = json_decode( $start( 'nothing', '--format=json', '--orchestrator={"id":"o"}' )[1], true );
			$t->same( [ 'wp-codebox/run-handle/v1', 'o' ], [ $handle['schema'], $handle['orchestrator']['id'] ] );
			$t->contains( ",running,", $start( 'nothing', '--format=csv' )[1] );
			[ $code, $out ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php agent.php nothing', '--input-json={"wait":false}', '--format=ids' ] );
			$t->same( [ 0, 1 ], [ $code, preg_match( '/^run_[0-9a-f]{32}\n$/', $out ) ] );
			$t->same( 0, $runs( 'events', trim( $out ), '--follow' )[0] );
		}
	);
	$t->test(
		'--follow exits with the status of the run, and runs get exits with 0',
		static function () use ( $t, $fresh, $id, $runs ): void {
			$fresh();
			$failed = $id( 'fix-and-fail' );
			$t->same( 1, $runs( 'events', $failed, '--follow' )[0] );
			$t->same( 0, $runs( 'get', $failed )[0] );
			$late = $id( 'sleep', '--timeout=6s' );
			$t->same( 124, $runs( 'events', $late, '--follow' )[0] );
		}
	);
	$t->test(
		'--follow --format=json prints each event once, one event a line',
		static function () use ( $t, $fresh, $id, $runs, $follow ): void {
			$fresh();
			$token                = bin2hex( random_bytes( 4 ) );
			$run                  = $id( "told $token" );
			[ $code, $out, $err ] = $follow( $token, $run, '--format=json' );
			$events               = array_map( static fn( string $line ): array => json_decode( $line, true ), explode( "\n", trim( $out ) ) );
			$t->same( [ 0, range( 1, count( $events ) ) ], [ $code, array_column( $events, 'seq' ) ], $err );
			$page = json_decode( $runs( 'events', $run, '--format=json', '--per-page=1000' )[1], true );
			$t->same( $events, $page['events'] );
			$t->same( "3\n", $runs( 'events', $run, '--after=1', '--per-page=2', '--porcelain' )[1] );
			$t->same( "seq\n2\n3\n", $runs( 'events', $run, '--after=1', '--per-page=2', '--format=csv', '--fields=seq' )[1] );
			[ $code, , $err ] = $runs( 'events', $run, '--follow', '--format=csv' );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_input_invalid)', $err );
		}
	);
	$t->test(
		'Ctrl-C while following does not end the run, and runs cancel does',
		static function () use ( $t, $fresh, $id, $runs ): void {
			$fresh();
			$run              = $id( 'sleep' );
			[ $code, , $err ] = $t->wp(
				[ 'codebox', 'runs', 'events', $run, '--follow' ],
				[],
				[
					'after'     => 'agent | agent says sleep',
					'meanwhile' => static fn( int $pid ): bool => posix_kill( $pid, SIGINT ),
				]
			);
			$t->same( 130, $code, $err );
			$t->same( 1, preg_match( "/The run goes on. Follow it again: wp codebox runs events $run --follow --after=[1-9]/", $err ), $err );
			$t->same( "running\n", $runs( 'get', $run, '--porcelain' )[1] );
			$t->same( [ 0, "requested\n" ], array_slice( $runs( 'cancel', $run, '--porcelain' ), 0, 2 ) );
			$t->same( 130, $runs( 'events', $run, '--follow' )[0] );
			$t->same( [ 0, "already_ended\n" ], array_slice( $runs( 'cancel', $run, '--porcelain' ), 0, 2 ) );
		}
	);
	$t->test(
		'runs list prints pages, and runs commands refuse invalid flags, unknown ids and users without capability',
		static function () use ( $t, $runs ): void {
			$t->idle();
			$ids = explode( "\n", trim( $runs( 'list', '--porcelain' )[1] ) );
			$t->true( count( $ids ) > 5, 'runs are missing' );
			[ $code, $out, $err ] = $runs( 'list', '--page=2', '--per-page=2', '--format=json', '--fields=run_id,status' );
			$t->same( [ 0, array_slice( $ids, 2, 2 ) ], [ $code, array_column( json_decode( $out, true ), 'run_id' ) ], $err );
			$t->contains( 'see the next page with --page=3', $err );
			$t->same( '', $runs( 'list', '--status=running', '--porcelain' )[1] );
			foreach ( [ [ 'list', '--per-page=0' ], [ 'list', '--per-page=201' ], [ 'list', '--page=0' ], [ 'events', $ids[0], '--after=x' ], [ 'events', $ids[0], '--per-page=1001' ] ] as $bad ) {
				[ $code, $out, $err ] = $runs( ...$bad );
				$t->same( [ 1, '' ], [ $code, $out ], implode( ' ', $bad ) );
				$t->contains( '(wp_codebox_input_invalid)', $err );
			}
			[ $code, , $err ] = $runs( 'get', 'run_' . str_repeat( '0', 32 ) );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_run_not_found)', $err );
			$t->contains( '(wp_codebox_run_ambiguous)', $runs( 'get', 'run_' )[2] );
			$t->same( 126, $runs( 'list', '--user=editor' )[0] );
			$t->same( 0, $runs( 'list', '--user=admin' )[0] );
		}
	);
	$t->test(
		'run-agent-task on a site at its run limit exits with 125',
		static function () use ( $t, $fresh, $fake, $id, $runs ): void {
			$fresh();
			$run  = $id( 'sleep' );
			$task = [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php agent.php nothing' ];
			[ $code, , $err ] = $t->wp( $task, $fake ? [ 'WP_CODEBOX_FAKE_MAX_RUNS' => '1' ] : [], [ 'php_flags' => array_merge( $t->php_flags, $fake ? [] : [ '-d', 'wp_codebox.max_runs=1' ] ) ] );
			$t->same( 125, $code, $err );
			$t->contains( '(wp_codebox_busy)', $err );
			$t->same( 0, $t->wp( $task )[0], 'positive control' );
			$runs( 'cancel', $run );
			$t->idle();
		}
	);
};
