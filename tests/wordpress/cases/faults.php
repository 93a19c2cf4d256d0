<?php
/**
 * Faults of the host: audit log, signature, changed source, start of the sandbox.
 */

declare(strict_types=1);

use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$file  = '/wordpress/wp-content/plugins/sample/sample.php';
	$fresh = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
	};
	$apply = static function () use ( $t, $file, $fresh ): mixed {
		$fresh();
		$t->as( 'administrator' );
		$made = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
		return $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] );
	};
	$text  = static fn(): string => (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' );

	$t->test(
		'an apply is refused when the audit log cannot be written before it',
		static function () use ( $t, $apply, $text ): void {
			putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN=1' );
			$t->error( 'wp_codebox_audit_failed', 500, $apply() );
			$t->contains( "'helo'", $text() );
		}
	);
	$t->test(
		'an apply whose result cannot be audited is an error that contains the result',
		static function () use ( $t, $apply, $text ): void {
			putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN=result' );
			$error = $apply();
			$t->error( 'wp_codebox_audit_failed', 500, $error );
			$t->same( [ $text() ], [ str_replace( 'helo', 'hello', (string) file_get_contents( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php' ) ) ] );
			$t->same( 'applied', $error->get_error_data()['result']['status'] );
		}
	);
	$t->test(
		'a discard writes an audit record',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$made = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php agent.php nothing' ] ) );
			$gone = $t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			$log  = WPCodebox\Native\Artifacts::auditRecords( ( new WPCodebox\Host\Site( new WPCodebox\Host\InstalledCode() ) )->id(), -1 )['records'][0];
			$t->same( [ 'discard', $made['run']['run_id'], $gone['audit']['seq'] ], [ $log['event'], $log['run_id'], $log['seq'] ] );
		}
	);
	$t->test(
		'artifacts inspect says that a signature does not cover every key of the manifest',
		static function () use ( $t, $fresh ): void {
			$fresh();
			$t->as( 'administrator' );
			$made = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
			putenv( 'WP_CODEBOX_FAKE_COVERAGE=files' );
			try {
				$t->contains( 'The bundle verifies (signed by this host, except some fields of the manifest).', $t->wp( [ 'codebox', 'artifacts', 'inspect', $made['run']['run_id'] ] )[2] );
			} finally {
				putenv( 'WP_CODEBOX_FAKE_COVERAGE' );
			}
		}
	);
	$t->test(
		'only a bundle signed by this host or by a trusted key of the settings can be applied',
		static function () use ( $t, $apply ): void {
			foreach ( [ 'unsigned', 'signed-by-unknown', 'signed-by-known', 'invalid' ] as $status ) {
				putenv( 'WP_CODEBOX_FAKE_SIGNATURE=' . $status );
				delete_site_option( 'wp_codebox_trusted_keys' );
				$t->error( 'wp_codebox_artifact_untrusted', 403, $apply() );
				update_site_option( 'wp_codebox_trusted_keys', [ str_repeat( 'fade', 16 ) ] );
				if ( 'signed-by-known' === $status ) {
					$t->ok( $apply() );
					add_filter( 'wp_codebox_trusted_keys', '__return_empty_array' );
					$t->error( 'wp_codebox_artifact_untrusted', 403, $apply() );
					remove_filter( 'wp_codebox_trusted_keys', '__return_empty_array' );
				} else {
					$t->error( 'wp_codebox_artifact_untrusted', 403, $apply() );
				}
			}
			update_site_option( 'wp_codebox_trusted_keys', [ str_repeat( 'a', 64 ) ] );
			$widen = static fn(): array => [ str_repeat( 'fade', 16 ), str_repeat( 'a', 64 ) ];
			add_filter( 'wp_codebox_trusted_keys', $widen );
			putenv( 'WP_CODEBOX_FAKE_SIGNATURE=signed-by-known' );
			$t->error( 'wp_codebox_artifact_untrusted', 403, $apply() );
			remove_filter( 'wp_codebox_trusted_keys', $widen );
			delete_site_option( 'wp_codebox_trusted_keys' );
			putenv( 'WP_CODEBOX_FAKE_SIGNATURE' );
			$t->ok( $apply() );
		}
	);
	$t->test(
		'the apply of a bundle whose source changed during the run is refused',
		static function () use ( $t, $apply ): void {
			putenv( 'WP_CODEBOX_FAKE_BASELINE=changed' );
			$t->error( 'wp_codebox_baseline_changed', 409, $apply() );
		}
	);
	$t->test(
		'a sandbox that cannot start is an error with exit status 125',
		static function () use ( $t, $apply ): void {
			putenv( 'WP_CODEBOX_FAKE_NO_START=1' );
			$t->as( 'administrator' );
			$t->error( 'wp_codebox_sandbox_start_failed', 503, $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'true' ] ) );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=true' ] );
			$t->same( [ 125, '' ], [ $code, $out ] );
			$t->contains( "Error: The sandbox could not start. (wp_codebox_sandbox_start_failed)\n  - Allow user namespaces.\n", $err );
		}
	);
	$t->test(
		'the request to the extension has limits, environment, requester and mount roots, and no secrets',
		static function () use ( $t, $fresh ): void {
			$fresh();
			$log = getenv( 'TEST_WORK' ) . '/request.json';
			putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG=' . $log );
			$t->as( 'administrator' );
			$t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php agent.php nothing', 'sandbox_session_id' => 'sess-1', 'session_id' => 'conv-1', 'orchestrator' => [ 'id' => 'orch-1' ], 'task_timeout_seconds' => 40, 'agent_env' => [ 'SAMPLE_ENV' => '1' ] ] ) );
			$text    = (string) file_get_contents( $log );
			$request = json_decode( $text, true );
			foreach ( [ 'sess-1', 'conv-1', 'orch-1', DB_PASSWORD . 'AUTH_KEY', AUTH_KEY ] as $never ) {
				$t->true( ! str_contains( $text, $never ), "the request holds $never" );
			}
			$t->same( [ 'wall_clock_ms' => 40000 ], $request['limits'] );
			$t->same( [ 'SAMPLE_ENV' => '1' ], $request['agent']['env'] );
			$t->same( [ 'kind' => 'user', 'id' => 1, 'site' => ( new Site( new InstalledCode() ) )->id() ], $request['provenance']['requester'] );
			$t->same( [ realpath( ABSPATH ) ], [ $request['wordpress'] ] );
			$t->true( in_array( realpath( WP_PLUGIN_DIR . '/sample' ), $request['allowed_roots'], true ), 'the plugin is not an allowed root' );
			$t->true( ! in_array( realpath( WP_PLUGIN_DIR ), $request['allowed_roots'], true ), 'the directory of all plugins is an allowed root' );
			$t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=true' ] );
			$request = json_decode( (string) file_get_contents( $log ), true );
			$t->same( [ false, 'operator' ], [ isset( $request['allowed_roots'] ), $request['provenance']['requester']['kind'] ] );
			$t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=true', '--user=admin' ] );
			$t->same( true, isset( json_decode( (string) file_get_contents( $log ), true )['allowed_roots'] ) );
		}
	);
};
