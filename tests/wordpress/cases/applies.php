<?php
/**
 * Preflight and apply with the example host plugin.
 */

declare(strict_types=1);

use WPCodebox\Native\Artifacts;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$target = '/wordpress/wp-content/plugins/sample/';
	$plugin = WP_PLUGIN_DIR . '/sample/';
	$reset  = static function () use ( $plugin ): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $file ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $file, $plugin . $file );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', $plugin . 'agent.php' );
	};
	$run    = static function ( string $what = 'fix' ) use ( $t, $reset ): array {
		$reset();
		$t->as( 'administrator' );
		return $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php ' . $what ] ) );
	};
	$lines  = static fn(): int => count( Artifacts::auditRecords( ( new Site( new InstalledCode() ) )->id(), 0, 1000 )['records'] );

	$t->test(
		'preflight returns the payload of an apply and writes nothing',
		static function () use ( $t, $run, $target, $plugin, $lines ): void {
			$made   = $run();
			$before = $lines();
			$flight = $t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $target . 'sample.php' ] ] ) );
			$t->same( [ true, 'wp-codebox/artifact-apply-preflight/v1', [ $target . 'sample.php' ] ], [ $flight['success'], $flight['schema'], $flight['approved_files'] ] );
			$t->contains( 'hello', $flight['payload']['patch'] );
			$t->true( ! str_contains( $flight['payload']['patch'], 'more' ), 'the patch holds a file that was not approved' );
			$t->same( hash( 'sha256', $flight['payload']['patch'] ), $flight['patch_sha256'] );
			$t->same( [ $target . 'sample.php' ], array_column( $flight['changed_files'], 'path' ) );
			$t->contains( "'helo'", (string) file_get_contents( $plugin . 'sample.php' ) );
			$t->same( $before, $lines(), 'a preflight writes no audit record' );
		}
	);
	$t->test(
		'applying one of two files changes only that file and writes two audit records',
		static function () use ( $t, $run, $target, $plugin, $lines ): void {
			$made   = $run();
			$seen   = null;
			$spy    = static function ( mixed $result, array $payload ) use ( &$seen ): mixed {
				$seen = $payload;
				return $result;
			};
			$before = $lines();
			add_filter( 'wp_codebox_apply_approved_artifact', $spy, 5, 2 );
			$done = $t->ok( $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $target . 'sample.php' ], 'approver' => 'Jo Reviewer', 'manifest_sha256' => $made['run']['manifest_sha256'] ] ) );
			remove_filter( 'wp_codebox_apply_approved_artifact', $spy, 5 );
			$t->same( [ true, 'wp-codebox/artifact-apply/v1', 'applied', [ $target . 'sample.php' ] ], [ $done['success'], $done['schema'], $done['result']['status'], $done['result']['applied_files'] ] );
			$t->contains( "'hello'", (string) file_get_contents( $plugin . 'sample.php' ) );
			$t->contains( "'moore'", (string) file_get_contents( $plugin . 'inc/more.php' ) );
			$t->same( $before + 2, $lines() );
			$t->true( isset( $done['audit']['seq'], $done['audit']['hash'] ), 'no audit record' );

			$fields = [ 'approver', 'approver_claimed', 'requester', 'artifact_id', 'artifact', 'approved_files', 'apply_target', 'patch', 'patch_sha256', 'artifact_content_digest', 'artifact_verification', 'changed_files', 'risks', 'mount_patches', 'manifest_sha256', 'run_id', 'targets', 'target_differs', 'approval', 'confirm_sensitive', 'browser_origin', 'browser_origin_confirmed' ];
			$t->same( $fields, array_keys( $seen ) );
			$t->same( [ $made['artifact_id'], 'Jo Reviewer', null, [ rtrim( $target, '/' ) => realpath( rtrim( $plugin, '/' ) ) ] ], [ $seen['artifact_id'], $seen['approver'], $seen['apply_target'], $seen['targets'] ] );
			$t->same( [ hash( 'sha256', $seen['patch'] ), $done['patch_sha256'], true ], [ $seen['patch_sha256'], $seen['patch_sha256'], $seen['artifact_verification']['valid'] ] );
			$t->same( [ true, 'admin' ], [ $seen['approver_claimed'], $seen['requester']['login'] ] );
			$t->same( [ [ 'Jo Reviewer', true ], [ 'Jo Reviewer', true ] ], array_map( static fn( array $line ): array => [ $line['approver'], $line['approver_claimed'] ], $t->audited( 2 ) ) );
			$t->same( "approver,who\n\"Jo Reviewer (claimed)\",admin\n", $t->wp( [ 'codebox', 'audit', 'list', '--per-page=1', '--format=csv', '--fields=approver,who' ] )[1] );
			$t->true( ! isset( $seen['artifact_verification']['bundleDirectory'] ), 'the payload contains a path of the host' );
			$t->same( hash( 'sha256', $seen['mount_patches'][0]['patch'] ), $seen['mount_patches'][0]['sha256'] );
		}
	);
	$t->test(
		'files not applied yet can be applied later, and an applied file conflicts',
		static function () use ( $t, $run, $target, $plugin ): void {
			$id = $run()['run']['run_id'];
			$t->ok( $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $id, 'approved_files' => [ $target . 'sample.php' ] ] ) );
			$t->same( [ 'admin', false ], [ $t->audited()[0]['approver']['login'], $t->audited()[0]['approver_claimed'] ], 'without an approver the current user is recorded' );
			$t->error( 'wp_codebox_apply_conflict', 409, $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $id, 'approved_files' => [ $target . 'sample.php', $target . 'inc/more.php' ] ] ) );
			$t->ok( $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $id, 'approved_files' => [ $target . 'inc/more.php' ] ] ) );
			$t->contains( "'more'", (string) file_get_contents( $plugin . 'inc/more.php' ) );
		}
	);
	$t->test(
		'an apply with wrong files, id, manifest digest or target is refused and written to the audit log',
		static function () use ( $t, $run, $target, $plugin, $lines ): void {
			$made  = $run();
			$id    = $made['run']['run_id'];
			$good  = [ $target . 'sample.php' ];
			$tries = [
				[ 'wp_codebox_artifact_id_missing', 400, [ 'approved_files' => $good ] ],
				[ 'wp_codebox_artifact_not_found', 404, [ 'artifact_id' => 'run_' . str_repeat( '0', 32 ), 'approved_files' => $good ] ],
				[ 'wp_codebox_approved_files_missing', 400, [ 'artifact_id' => $id ] ],
				[ 'wp_codebox_approved_files_missing', 400, [ 'artifact_id' => $id, 'approved_files' => [] ] ],
				[ 'wp_codebox_approved_files_invalid', 400, [ 'artifact_id' => $id, 'approved_files' => [ $target . 'other.php' ] ] ],
				[ 'wp_codebox_approved_files_invalid', 400, [ 'artifact_id' => $id, 'approved_files' => [ $good[0], 'sample.php' ] ] ],
				[ 'wp_codebox_approved_files_invalid', 400, [ 'artifact_id' => $id, 'approved_files' => [ $good[0] . ' ' ] ] ],
				[ 'wp_codebox_artifact_changed', 409, [ 'artifact_id' => $id, 'approved_files' => $good, 'manifest_sha256' => str_repeat( '0', 64 ) ] ],
			];
			foreach ( $tries as [ $code, $status, $input ] ) {
				$before = $lines();
				$t->error( $code, $status, $t->ability( 'apply-approved-artifact', $input ) );
				$t->same( $before + 1, $lines(), "$code is not in the audit log" );
				$t->error( $code, $status, $t->ability( 'apply-artifact-preflight', $input ) );
			}
			file_put_contents( $plugin . 'sample.php', "<?php\n// somebody was here\n" );
			$error = $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $id, 'approved_files' => $good ] );
			$t->error( 'wp_codebox_apply_conflict', 409, $error );
			$t->contains( $good[0], (string) json_encode( $error->get_error_data(), JSON_UNESCAPED_SLASHES ) );
			$t->same( "<?php\n// somebody was here\n", (string) file_get_contents( $plugin . 'sample.php' ) );
		}
	);
	$t->test(
		'a bundle tampered with between review and apply is refused',
		static function () use ( $t, $run, $target, $plugin ): void {
			$made = $run();
			$in   = [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $target . 'sample.php' ] ];
			$t->ok( $t->ability( 'apply-artifact-preflight', $in ) );
			file_put_contents( $made['paths']['patch'], str_replace( 'hello', 'hacked', (string) file_get_contents( $made['paths']['patch'] ) ) );
			foreach ( [ 'apply-artifact-preflight', 'apply-approved-artifact' ] as $name ) {
				$t->error( 'wp_codebox_artifact_verification_failed', 400, $t->ability( $name, $in ) );
			}
			$t->contains( "'helo'", (string) file_get_contents( $plugin . 'sample.php' ) );
		}
	);
	$t->test(
		'an apply conflicts when the plugin it changes is no longer installed',
		static function () use ( $t, $run, $target, $plugin ): void {
			$id = $run()['run']['run_id'];
			rename( rtrim( $plugin, '/' ), WP_PLUGIN_DIR . '/../sample-away' );
			wp_cache_delete( 'plugins', 'plugins' );
			$answer = $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $id, 'approved_files' => [ $target . 'sample.php' ] ] );
			rename( WP_PLUGIN_DIR . '/../sample-away', rtrim( $plugin, '/' ) );
			wp_cache_delete( 'plugins', 'plugins' );
			$t->error( 'wp_codebox_apply_conflict', 409, $answer );
		}
	);
	$t->test(
		'a patch that is not UTF-8 is applied byte for byte, and shown as base64',
		static function () use ( $t, $run, $target, $plugin ): void {
			$made   = $run( 'latin1' );
			$in     = [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $target . 'latin1.txt' ] ];
			$flight = $t->ok( $t->ability( 'apply-artifact-preflight', $in ) );
			$patch  = $flight['payload']['patch'] ?? base64_decode( $flight['payload']['patch_base64'] );
			$t->same( $flight['patch_sha256'], hash( 'sha256', $patch ) );
			$t->true( false !== json_encode( $flight ), 'the preflight cannot be encoded as JSON' );
			$t->ok( $t->ability( 'apply-approved-artifact', $in ) );
			$t->same( "caf\xe9\n", (string) file_get_contents( $plugin . 'latin1.txt' ) );
			unlink( $plugin . 'latin1.txt' );
		}
	);
	$t->test(
		'a change of code that is not installed needs an apply target that the caller may write',
		static function () use ( $t, $reset ): void {
			$reset();
			$theme = get_theme_root() . '/twentytwentyfive';
			[ $code, $out ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--mount=' . getenv( 'TEST_FIXTURES' ) . '/sample:/workspace/code', '--agent-command=php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php fix', '--porcelain' ] );
			$t->same( 0, $code );
			$t->as( 'administrator' );
			$in = [ 'artifact_id' => trim( $out ), 'approved_files' => [ '/workspace/code/sample.php' ] ];
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'apply-artifact-preflight', $in ) );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'apply-artifact-preflight', $in + [ 'apply_target' => [ 'directory' => '/nowhere/at/all' ] ] ) );
			wp_mkdir_p( getenv( 'TEST_WORK' ) . '/outside' );
			foreach ( [ ABSPATH, '/', WP_CONTENT_DIR, getenv( 'TEST_WORK' ) . '/outside' ] as $denied ) {
				$t->error( 'wp_codebox_mount_denied', 403, $t->ability( 'apply-artifact-preflight', $in + [ 'apply_target' => [ 'directory' => $denied ] ] ) );
			}
			// The operator may use directories outside plugins and themes, but none of the deny list.
			$copy = getenv( 'TEST_WORK' ) . '/target-copy';
			wp_mkdir_p( $copy . '/inc' );
			foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
				copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, "$copy/$name" );
			}
			foreach ( [ ABSPATH => 126, '/' => 126, WP_PLUGIN_DIR . '/wp-codebox' => 126, $copy => 0 ] as $directory => $status ) {
				[ $code, , $err ] = $t->wp( [ 'codebox', 'artifacts', 'preflight-apply', trim( $out ), '--all', '--apply-target=' . wp_json_encode( [ 'directory' => $directory ] ) ] );
				$t->same( $status, $code, $err );
			}
			// The source of the change is not installed code, so only the operator may name another target.
			foreach ( [ [ 'directory' => $theme ], [ 'directory' => WP_PLUGIN_DIR . '/sample' ], [ 'directories' => [ '/workspace/code' => WP_PLUGIN_DIR . '/sample' ] ] ] as $named ) {
				$t->error( 'wp_codebox_apply_target_mismatch', 409, $t->ability( 'apply-artifact-preflight', $in + [ 'apply_target' => $named ] ) );
			}
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'apply', $in['artifact_id'], '--all', '--apply-target=' . wp_json_encode( [ 'directory' => $copy ] ), '--format=json' ] );
			$t->same( [ 0, true, [ '/workspace/code' => realpath( $copy ) ] ], [ $code, $t->audited()[0]['target_differs'] ?? null, $t->audited()[0]['targets'] ] );
		}
	);
	$t->test(
		'a user can apply a change only to the code it was made from',
		static function () use ( $t, $reset, $plugin ): void {
			$reset();
			$t->as( 'administrator' );
			$run  = static fn( array $mount ): array => [
				'artifact_id'    => $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Add', 'mounts' => [ $mount + [ 'source' => rtrim( $plugin, '/' ) ] ], 'agent_command' => 'php agent.php latin1' ] ) )['run']['run_id'],
				'approved_files' => [ $mount['target'] . '/latin1.txt' ],
			];
			$into = static fn( string $directory ): array => [ 'apply_target' => [ 'directory' => $directory ] ];
			// An added file applies in any directory, and the metadata claims another plugin as its origin.
			$in = $run( [ 'target' => '/workspace/code', 'metadata' => [ 'origin' => [ 'kind' => 'plugin', 'slug' => 'host-plugin' ], 'note' => 'kept' ] ] );
			foreach ( [ 'apply-artifact-preflight', 'apply-approved-artifact', 'stage-artifact-apply' ] as $name ) {
				$t->error( 'wp_codebox_apply_target_mismatch', 409, $t->ability( $name, $in + $into( WP_PLUGIN_DIR . '/host-plugin' ) ) );
				$t->error( 'wp_codebox_apply_target_mismatch', 409, $t->ability( $name, $in + $into( WP_PLUGIN_DIR . '/sample/inc' ) ) );
				$t->error( 'wp_codebox_mount_denied', 403, $t->ability( $name, $in + $into( WP_PLUGIN_DIR . '/wp-codebox/includes' ) ) );
			}
			$t->error( 'wp_codebox_apply_target_mismatch', 409, $t->ability( 'review-artifact', $in + [ 'action' => 'approve' ] + $into( WP_PLUGIN_DIR . '/host-plugin' ) ) );
			$t->same( false, file_exists( WP_PLUGIN_DIR . '/host-plugin/latin1.txt' ) );

			// The sample mounted at the path of another plugin, and at the path of WP Codebox itself.
			$other = $run( [ 'target' => '/wordpress/wp-content/plugins/host-plugin' ] );
			$t->error( 'wp_codebox_apply_target_mismatch', 409, $t->ability( 'apply-artifact-preflight', $other ) );
			$own = $run( [ 'target' => '/wordpress/wp-content/plugins/wp-codebox' ] );
			$t->error( 'wp_codebox_mount_denied', 403, $t->ability( 'apply-artifact-preflight', $own ) );

			$right  = $in + $into( WP_PLUGIN_DIR . '/sample' );
			$flight = $t->ok( $t->ability( 'apply-artifact-preflight', $right ) );
			$t->same( [ [ '/workspace/code' => realpath( WP_PLUGIN_DIR . '/sample' ) ], false ], [ $flight['targets'], $flight['payload']['target_differs'] ] );
			[ , $shown ] = $t->wp( [ 'codebox', 'artifacts', 'preflight-apply', $in['artifact_id'], '--all', '--apply-target=' . wp_json_encode( [ 'directory' => WP_PLUGIN_DIR . '/host-plugin' ] ), '--format=json' ] );
			$shown = json_decode( $shown, true );
			$t->same( [ true, 64 ], [ $shown['payload']['target_differs'], strlen( $shown['approval'] ) ], 'the operator may name another target' );
			$t->error( 'wp_codebox_artifact_changed', 409, $t->ability( 'apply-approved-artifact', [ 'approval' => $shown['approval'] ] + $right ) );
			$done = $t->ok( $t->ability( 'review-artifact', [ 'action' => 'approve', 'approval' => $flight['approval'] ] + $right ) );
			$t->same( [ $flight['targets'], $flight['targets'] ], [ $done['decision']['targets'], $t->audited()[0]['targets'] ] );
			$t->same( true, file_exists( $plugin . 'latin1.txt' ) );
			unlink( $plugin . 'latin1.txt' );
		}
	);
};
