<?php
/**
 * Running a bundle's task again.
 */

declare(strict_types=1);

use WPCodebox\Replay\Comparison;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$plugin = WP_PLUGIN_DIR . '/sample';
	$file   = '/wordpress/wp-content/plugins/sample/sample.php';
	$replay = static fn( array $made, array $more = [] ): mixed => $t->ability( 'replay-artifact', [ 'artifact_id' => $made['run']['run_id'] ] + $more );
	$kinds  = static fn( array $answer ): array => array_map( static fn( array $row ): string => $row['kind'] . ' ' . $row['status'], $answer['differences'] );

	$t->test(
		'replay: unchanged code gives an identical result, and nothing on the site changes',
		static function () use ( $t, $replay, $plugin ): void {
			$made = $t->made( 'fix', [ 'checks' => [ 'php -l sample.php' ], 'context' => [ 'why' => "it's so" ], 'limits' => [ 'wall_clock_ms' => 60000 ] ] );
			$done = $t->ok( $replay( $made ) );
			$t->same( [ true, 'wp-codebox/artifact-replay/v1', 'compared', true, [], [] ], [ $done['success'], $done['schema'], $done['status'], $done['identical'], $done['differences'], $done['notes'] ], (string) json_encode( $done ) );
			$t->same( [ $made['run']['run_id'], $made['artifact_id'], 'succeeded', 2 ], [ $done['original']['run_id'], $done['replay']['artifact_id'], $done['replay']['outcome'], $done['replay']['changed_files'] ] );
			$t->true( $done['replay']['run_id'] !== $done['original']['run_id'], 'the replay has no new run id' );
			$t->contains( "'helo'", (string) file_get_contents( $plugin . '/sample.php' ) );
			$lines = $t->audited( 2 );
			$t->same( [ [ 'replay', 'started' ], [ 'replay', 'success' ] ], array_map( static fn( array $line ): array => [ $line['event'], $line['status'] ], $lines ) );
			$t->same( [ $done['replay']['run_id'], 0 ], [ $lines[1]['result']['run_id'], $lines[1]['result']['differences'] ] );
			$bundle = $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $done['replay']['run_id'] ] ) )['artifact']['metadata'];
			$first  = $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) )['artifact']['metadata'];
			$t->same( [ $first['task'], $first['spec'], $first['policy'] ?? null ], [ $bundle['task'], $bundle['spec'], $bundle['policy'] ?? null ] );
			$t->same( $made['run']['run_id'], $bundle['provenance']['metadata']['replay_of'] );
			$t->error( 'wp_codebox_input_invalid', 400, $replay( $made, [ 'replay_run_id' => $made['run']['run_id'] ] ) );
			$t->same( true, $t->ok( $replay( $made, [ 'replay_run_id' => $done['replay']['run_id'] ] ) )['identical'], 'a second comparison without a run differs' );
		}
	);
	$t->test(
		'replay: changed code gives a result with the differences listed',
		static function () use ( $t, $replay, $kinds, $plugin, $file ): void {
			$made = $t->made( 'fix', [ 'checks' => [ 'grep -q hello sample.php' ] ] );
			// The first file has another greeting, and the second file has other content.
			file_put_contents( $plugin . '/sample.php', str_replace( 'helo', 'good day', (string) file_get_contents( $plugin . '/sample.php' ) ) );
			file_put_contents( $plugin . '/inc/more.php', "<?php // moore\n" );
			$done = $t->ok( $replay( $made ) );
			$t->same( false, $done['identical'] );
			$t->same( [ 'baseline different', 'baseline different', 'changed-file different', 'changed-file only-in-original', 'outcome different', 'check different' ], $kinds( $done ) );
			$t->same( hash_file( 'sha256', $plugin . '/sample.php' ), array_column( $done['differences'], 'actual', 'path' )[ $file ] );
			$t->same( [ 'succeeded', 'partial' ], [ $done['original']['outcome'], $done['replay']['outcome'] ] );
			unlink( $plugin . '/sample.php' );
			$gone = $replay( $made );
			$t->made( 'nothing' );
			$t->true( is_wp_error( $gone ) || in_array( 'absent', array_column( $gone['differences'], 'actual' ), true ), 'a missing file was not noticed' );
		}
	);
	$t->test(
		'replay: a run whose inputs are missing is refused with the names of the inputs',
		static function () use ( $t, $replay, $plugin ): void {
			$made = $t->made();
			[ , $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php fix', '--porcelain' ] );
			$t->as( 'administrator' );
			$error = $replay( [ 'run' => [ 'run_id' => trim( $out ) ] ] );
			$t->error( 'wp_codebox_replay_unavailable', 422, $error );
			$t->contains( '/run/codebox/staged/0-agent.php', $error->get_error_data()['missing'][0] ?? '' );
			$t->same( [ 'replay', 'failure', 'wp_codebox_replay_unavailable' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );

			$error = $replay( $t->made( 'show', [ 'agent_env' => [ 'SAMPLE_ENV' => 'blue' ] ] ) );
			$t->error( 'wp_codebox_replay_unavailable', 422, $error );
			$t->same( [ "the value of the agent's environment variable SAMPLE_ENV" ], $error->get_error_data()['missing'] );

			$made = $t->made();
			rename( $plugin, WP_PLUGIN_DIR . '/../sample-away' );
			wp_cache_delete( 'plugins', 'plugins' );
			$error = $replay( $made );
			rename( WP_PLUGIN_DIR . '/../sample-away', $plugin );
			wp_cache_delete( 'plugins', 'plugins' );
			$t->error( 'wp_codebox_replay_unavailable', 422, $error );
			$t->contains( 'the mount /wordpress/wp-content/plugins/sample', $error->get_error_data()['missing'][0] );
			$t->same( true, $t->ok( $replay( $made ) )['identical'], 'positive control' );
		}
	);
	$t->test(
		'replay: a mount other than a plugin or theme needs a directory that the caller may mount',
		static function () use ( $t, $replay ): void {
			$t->made( 'nothing' );
			$source = WP_PLUGIN_DIR . '/sample';
			$made   = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'mounts' => [ [ 'source' => $source, 'target' => '/workspace/code' ] ], 'agent_command' => 'php agent.php fix' ] ) );
			$t->error( 'wp_codebox_replay_unavailable', 422, $replay( $made ) );
			foreach ( [ '/', '/etc', ABSPATH ] as $directory ) {
				$t->error( 'wp_codebox_replay_unavailable', 422, $replay( $made, [ 'apply_target' => [ 'directory' => $directory ] ] ) );
			}
			$t->same( true, $t->ok( $replay( $made, [ 'apply_target' => [ 'directory' => $source ] ] ) )['identical'], 'positive control' );
		}
	);
	$t->test(
		'replay: a secret that no plugin supplies any more is reported as missing',
		static function () use ( $t, $replay ): void {
			$supply = static fn( array $values ): array => [ 'API_KEY' => [ 'value' => 'a-secret-value-0123456789', 'hosts' => [ 'api.example.org' ] ] ];
			if ( 'fake' === $t->phase ) {
				$plan = new WPCodebox\Replay\ReplayPlan( new WPCodebox\Apply\ApplyTargets( new WPCodebox\Host\InstalledCode(), new WPCodebox\Host\Site( new WPCodebox\Host\InstalledCode() ) ) );
				$spec = [ 'run_id' => 'run_1', 'metadata' => [ 'task' => [ 'goal' => 'x' ], 'spec' => [ 'agent' => [ 'argv' => [ 'php', "it's", '' ] ], 'secrets' => [ [ 'name' => 'API_KEY' ] ] ] ] ];
				$rows = [ [ 'target' => '/wordpress/wp-content/plugins/sample' ] ];
				$task = $plan->input( $spec, $rows, [], WPCodebox\Authority::User );
				$t->same( [ [ 'API_KEY' ], [ 'php', "it's" ] ], [ $task['secret_env'], array_slice( WPCodebox\Native\Run::splitCommand( $task['agent_command'] ), 0, 2 ) ] );
				foreach ( [ [ 'task', [] ], [ 'task', [ 'goal' => 'use [REDACTED:token]' ] ], [ 'spec', [] ], [ 'provenance', [ 'agent_env' => [ 'MODE' ] ] ], [ 'spec', [ 'agent' => [ 'argv' => [ 'php' ] ], 'checks' => [ 'php /run/codebox/staged/0-check.php' ] ] ], [ 'provenance', [ 'staged_files' => [ '/run/codebox/staged/data' ] ] ] ] as [ $member, $value ] ) {
					$bad                        = $spec;
					$bad['metadata'][ $member ] = $value;
					try {
						$plan->input( $bad, $rows, [], WPCodebox\Authority::User );
						$t->true( false, 'nothing was missing: ' . json_encode( $value ) );
					} catch ( WPCodebox\Failure $failure ) {
						$t->same( [ 'wp_codebox_replay_unavailable', 1 ], [ $failure->error_code, count( $failure->data['missing'] ) ], $failure->getMessage() );
					}
				}
				return;
			}
			$input = [ 'secret_env' => [ 'API_KEY' ], 'network' => [ 'allowHosts' => [ 'api.example.org' ] ] ];
			$made  = $t->filtered( 'wp_codebox_secret_values', $supply, static fn(): array => $t->made( 'fix', $input ) );
			$error = $replay( $made );
			$t->error( 'wp_codebox_replay_unavailable', 422, $error );
			$t->same( [ 'the secret API_KEY' ], $error->get_error_data()['missing'] );
			$t->same( true, $t->ok( $t->filtered( 'wp_codebox_secret_values', $supply, static fn(): mixed => $replay( $made ) ) )['identical'], 'positive control' );
		}
	);
	$t->test(
		'replay: a tampered or untrusted bundle is refused',
		static function () use ( $t, $replay ): void {
			$made = $t->made();
			$t->tamper( $made );
			$t->error( 'wp_codebox_artifact_verification_failed', 400, $replay( $made ) );
			if ( 'fake' === $t->phase ) {
				$made = $t->made();
				putenv( 'WP_CODEBOX_FAKE_SIGNATURE=signed-by-unknown' );
				$t->error( 'wp_codebox_artifact_untrusted', 403, $replay( $made ) );
				putenv( 'WP_CODEBOX_FAKE_SIGNATURE' );
				$t->ok( $replay( $made ) );
			}
		}
	);
	$t->test(
		'replay: a user with only the run capability can replay own runs, and others are not found',
		static function () use ( $t, $replay ): void {
			$others = $t->made();
			$grant  = static fn( array $caps, string $cap ): array => 'wp_codebox_run' === $cap ? [ 'edit_posts' ] : $caps;
			$t->filtered(
				'map_meta_cap',
				$grant,
				static function () use ( $t, $replay, $others ): void {
					$t->as( 'editor' );
					$t->error( 'wp_codebox_artifact_not_found', 404, $replay( $others ) );
					$t->error( 'wp_codebox_artifact_not_found', 404, $replay( [ 'run' => [ 'run_id' => 'run_' . str_repeat( '0', 32 ) ] ] ) );
					$own = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
					$t->same( true, $t->ok( $replay( $own ) )['identical'], 'positive control' );
				}
			);
			$t->as( 'editor' );
			$t->same( 'ability_invalid_permissions', $replay( $others )->get_error_code() );
		}
	);
	$t->test(
		'replay: a run longer than the wait limit is compared in a later request',
		static function () use ( $t, $replay ): void {
			$ended = static function ( string $id ) use ( $t ): void {
				for ( $until = microtime( true ) + 60; 'running' === $t->ok( $t->ability( 'get-run', [ 'run_id' => $id ] ) )['run']['status']; usleep( 50000 ) ) {
					$t->true( microtime( true ) < $until, 'the run did not end in time' );
				}
			};
			// The run and its replay end only after a signal.
			$token = bin2hex( random_bytes( 4 ) );
			$made  = [ 'run' => $t->made( "told $token", [ 'wait' => false ] ) ];
			$t->wake( $token );
			$ended( $made['run']['run_id'] );
			$done = $t->filtered( 'wp_codebox_wait_timeout_ms', static fn(): int => 100, static fn(): array => $t->ok( $replay( $made ) ) );
			$t->same( [ 'running', $made['run']['run_id'], 'wp-codebox/run-handle/v1' ], [ $done['status'], $done['original']['run_id'], $done['run']['schema'] ] );
			$later = [ 'replay_run_id' => $done['replay']['run_id'] ];
			$t->wake( $token );
			$ended( $done['replay']['run_id'] );
			$t->same( [ 'compared', true ], array_values( array_intersect_key( $t->ok( $replay( $made, $later ) ), [ 'status' => 1, 'identical' => 1 ] ) ) );
		}
	);
	if ( 'fake' === $t->phase ) {
		$t->test(
			'replay: the comparison reports differences in files, outcome and checks',
			static function () use ( $t ): void {
				$bundle = static fn( array $files, string $outcome = 'succeeded', array $suites = [] ): array => [ 'changed_files' => [ 'files' => $files ], 'metadata' => [ 'outcome' => $outcome ], 'test_results' => [ 'suites' => $suites ] ];
				$row    = static fn( string $path, array $more = [] ): array => $more + [ 'path' => $path, 'status' => 'modified', 'type' => 'file', 'afterSha256' => 'a', 'insertions' => 1 ];
				$one    = new Comparison();
				$found  = static fn( array $a, array $b ): array => array_map( static fn( array $d ): string => $d['kind'] . ' ' . $d['status'], $one->differences( $a, $b ) );
				$t->same( [], $found( $bundle( [ $row( 'x' ) ] ), $bundle( [ [ 'type' => 'file', 'afterSha256' => 'a', 'status' => 'modified', 'path' => 'x', 'insertions' => 2 ] ] ) ) );
				$t->same( [ 'changed-file different', 'changed-file only-in-original', 'changed-file only-in-replay' ], $found( $bundle( [ $row( 'b' ), $row( 'a' ) ] ), $bundle( [ $row( 'a', [ 'afterMode' => '100755' ] ), $row( 'c' ) ] ) ) );
				$t->same( [ 'outcome different', 'check only-in-original' ], $found( $bundle( [], 'failed', [ [ 'name' => 'x', 'status' => 'failed', 'durationMs' => 5 ] ] ), $bundle( [] ) ) );
				$t->same( [], $found( $bundle( [], 'failed', [ [ 'name' => 'x', 'status' => 'failed', 'durationMs' => 5 ] ] ), $bundle( [], 'failed', [ [ 'name' => 'x', 'status' => 'failed', 'durationMs' => 7 ] ] ) ) );
				$notes = $one->baseline( $bundle( [ $row( '/m/x', [ 'relativePath' => '../x', 'mountTarget' => '/m' ] ), $row( '/m/y', [ 'relativePath' => 'y', 'mountTarget' => '/m', 'pathEncoding' => 'git-quoted' ] ) ] ), [ '/m' => '/tmp' ] );
				$t->same( [ [], [ '2 changed files could not be compared with the files on this host.' ] ], [ $notes['differences'], $notes['notes'] ] );
			}
		);
	}
};
