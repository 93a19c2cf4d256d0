<?php
/**
 * Applies with a missing, invalid or throwing apply adapter.
 */

declare(strict_types=1);

use WPCodebox\Native\Artifacts;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$file = '/wordpress/wp-content/plugins/sample/sample.php';
	$good = [
		'schema'          => 'wp-codebox/apply-result/v1',
		'adapter'         => 'test',
		'status'          => 'applied',
		'audit_reference' => 'test-1',
		'target'          => [ 'kind' => 'test' ],
		'applied_files'   => [ $file ],
	];
	$run  = static function () use ( $t ): array {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
		$t->as( 'administrator' );
		return $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
	};
	$last = static fn(): array => Artifacts::auditRecords( ( new Site( new InstalledCode() ) )->id(), -1 )['records'][0];
	// Applies a change with the given adapter instead of the example host plugin.
	$with = static function ( ?callable $adapter ) use ( $t, $run, $file ): mixed {
		global $wp_filter;
		$kept = $wp_filter['wp_codebox_apply_approved_artifact'];
		unset( $wp_filter['wp_codebox_apply_approved_artifact'] );
		if ( null !== $adapter ) {
			add_filter( 'wp_codebox_apply_approved_artifact', $adapter, 10, 2 );
		}
		$answer = $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $run()['run']['run_id'], 'approved_files' => [ $file ] ] );

		$wp_filter['wp_codebox_apply_approved_artifact'] = $kept;
		return $answer;
	};

	$t->test(
		'an apply without an adapter is refused and written to the audit log',
		static function () use ( $t, $with, $last ): void {
			$t->error( 'wp_codebox_apply_adapter_missing', 501, $with( null ) );
			$t->same( [ 'apply', 'failure', 'wp_codebox_apply_adapter_missing', 'admin' ], [ $last()['event'], $last()['status'], $last()['error']['code'], $last()['requester']['login'] ] );
		}
	);
	$t->test(
		'a site that disallows file modifications refuses an apply before any adapter is called',
		static function () use ( $t, $with, $run, $good, $last, $file ): void {
			$asked   = [];
			$called  = 0;
			$adapter = static function () use ( &$called, $good ): array {
				++$called;
				return $good;
			};
			$forbid  = static function ( bool $allowed, string $context ) use ( &$asked ): bool {
				$asked[] = [ $allowed, $context ];
				return false;
			};
			$t->filtered(
				'file_mod_allowed',
				$forbid,
				static function () use ( $t, $with, $run, $adapter, $last, $file ): void {
					$t->error( 'wp_codebox_file_changes_disallowed', 403, $with( $adapter ) );
					$t->same( [ 'apply', 'failure', 'wp_codebox_file_changes_disallowed' ], [ $last()['event'], $last()['status'], $last()['error']['code'] ] );
					$in = [ 'artifact_id' => $run()['run']['run_id'], 'approved_files' => [ $file ] ];
					foreach ( [ 'apply-artifact-preflight' => [], 'stage-artifact-apply' => [], 'review-artifact' => [ 'action' => 'approve' ] ] as $name => $more ) {
						$t->error( 'wp_codebox_file_changes_disallowed', 403, $t->ability( $name, $in + $more ) );
					}
					$t->ok( $t->ability( 'review-artifact', $in + [ 'action' => 'reject' ] ) );
				},
				2
			);
			$t->same( [ 0, [ true, 'wp_codebox_apply' ] ], [ $called, $asked[0] ] );
			$t->ok( $with( $adapter ) );
			$t->same( 1, $called, 'positive control' );
			$id = $run()['run']['run_id'];
			foreach ( [ "'DISALLOW_FILE_EDIT', true" => 126, "'DISALLOW_FILE_MODS', true" => 126, "'DISALLOW_FILE_EDIT', false" => 0 ] as $constant => $status ) {
				$t->same( $status, $t->wp( [ 'codebox', 'artifacts', 'preflight-apply', $id, '--all', "--exec=define( $constant );" ] )[0], $constant );
			}
			$open = "--exec=define( 'DISALLOW_FILE_EDIT', true ); WP_CLI::add_wp_hook( 'file_mod_allowed', static fn( bool \$allowed, string \$context ): bool => \$allowed || 'wp_codebox_apply' === \$context, 10, 2 );";
			$t->same( 0, $t->wp( [ 'codebox', 'artifacts', 'preflight-apply', $id, '--all', $open ] )[0], 'file_mod_allowed can allow an apply despite DISALLOW_FILE_EDIT' );
		}
	);
	$t->test(
		'a valid adapter result is returned and recorded as a success (positive control)',
		static function () use ( $t, $with, $good, $last ): void {
			$t->same( $good, $t->ok( $with( static fn(): array => $good ) )['result'] );
			$t->same( [ 'apply', 'success', 'test' ], [ $last()['event'], $last()['status'], $last()['adapter'] ] );
			$t->true( ! str_contains( (string) json_encode( $last() ), 'diff --git' ), 'the audit log holds a patch' );
		}
	);
	$t->test(
		'an invalid adapter result is refused and recorded as a failure',
		static function () use ( $t, $with, $good, $last ): void {
			foreach ( [ true, 'done', [], [ 'audit_reference' => '' ] + $good, [ 'applied_files' => [ '/etc/passwd' ] ] + $good ] as $bad ) {
				$t->error( 'wp_codebox_apply_result_invalid', 502, $with( static fn(): mixed => $bad ) );
				$t->same( [ 'failure', 'wp_codebox_apply_result_invalid' ], [ $last()['status'], $last()['error']['code'] ] );
			}
		}
	);
	$t->test(
		'an error returned by an adapter passes through with its code and status',
		static function () use ( $t, $with, $last ): void {
			$t->error( 'host_says_no', 423, $with( static fn(): WP_Error => new WP_Error( 'host_says_no', 'Locked.', [ 'status' => 423 ] ) ) );
			$t->same( 'host_says_no', $last()['error']['code'] );
		}
	);
	$t->test(
		'an adapter that throws is refused as an invalid result, without the text of the exception',
		static function () use ( $t, $with, $last ): void {
			$log    = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$answer = $with( static fn() => throw new LogicException( 'secret path' ) );
			ini_set( 'error_log', (string) $log );
			$t->error( 'wp_codebox_apply_result_invalid', 502, $answer );
			$t->true( ! str_contains( $answer->get_error_message() . json_encode( $answer->get_error_data() ), 'secret path' ), 'the text of the exception is in the answer' );
			$t->same( 'failure', $last()['status'] );
		}
	);
	$t->test(
		'an adapter result with status failed makes the apply a failure',
		static function () use ( $t, $with, $good, $last ): void {
			$answer = $t->ok( $with( static fn(): array => [ 'status' => 'failed', 'applied_files' => [] ] + $good ) );
			$t->same( [ false, 'failure' ], [ $answer['success'], $last()['status'] ] );
		}
	);
	$t->test(
		'the example host plugin refuses unknown targets, altered patches and patches that do not fit',
		static function () use ( $t, $run, $file ): void {
			$made    = $run();
			$payload = $t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] ) )['payload'];
			$host    = new WPCodeboxExampleHost\Git_Apply();
			$t->same( 'example_host_target_unknown', $host->apply( [ 'targets' => [] ] + $payload )->get_error_code() );
			$altered                              = $payload;
			$altered['mount_patches'][0]['patch'] = str_replace( 'hello', 'hacked', $altered['mount_patches'][0]['patch'] );
			$t->same( 'example_host_patch_altered', $host->apply( $altered )->get_error_code() );
			$t->same( 'example_host_nothing_to_do', $host->apply( [ 'mount_patches' => [] ] + $payload )->get_error_code() );
			file_put_contents( WP_PLUGIN_DIR . '/sample/sample.php', "<?php\n" );
			$t->same( 'example_host_patch_refused', $host->apply( $payload )->get_error_code() );
			add_filter( 'file_mod_allowed', '__return_false' );
			$t->same( 'example_host_file_mods_disallowed', $host->apply( $payload )->get_error_code() );
			remove_filter( 'file_mod_allowed', '__return_false' );
			$run();
			$t->same( 'applied', $host->apply( $payload )['status'], 'positive control' );
		}
	);
};
