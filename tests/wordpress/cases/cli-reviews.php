<?php
/**
 * `wp codebox artifacts review|stage-apply|export|import|reimport|replay`: output and exit status.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$path = '/wordpress/wp-content/plugins/sample/';
	$text = static fn(): string => (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' );
	$cli  = static fn( array $arguments, array $options = [] ): array => $t->wp( array_merge( [ 'codebox', 'artifacts' ], $arguments ), [], $options );

	$t->test(
		'cli: artifacts review rejects, approves and requests changes, and refuses invalid decisions',
		static function () use ( $t, $cli, $text, $path ): void {
			$id = $t->made()['run']['run_id'];
			[ $code, $out, $err ] = $cli( [ 'review', $id, '--action=reject', '--reason=No.', '--format=csv', '--fields=action,adapter,status' ] );
			$t->same( [ 0, "action,adapter,status\nreject,wp-codebox/default-review-decision,reject\n" ], [ $code, $out ], $err );
			$t->same( [ 'operator', 'No.' ], [ $t->audited()[0]['requester']['kind'], $t->audited()[0]['reason'] ] );
			foreach ( [
				[ [ '--action=merge' ], 1, 'wp_codebox_review_action_invalid' ],
				[ [ '--action=approve' ], 1, 'wp_codebox_approved_files_missing' ],
				[ [ '--action=approve', '--all', '--user=editor' ], 126, 'wp_codebox_forbidden' ],
				[ [ '--action=approve', '--all', '--manifest-sha256=' . str_repeat( '0', 64 ) ], 1, 'wp_codebox_artifact_changed' ],
			] as [ $flags, $status, $expected ] ) {
				[ $code, $out, $err ] = $cli( array_merge( [ 'review', $id ], $flags ) );
				$t->same( [ $status, '' ], [ $code, $out ], $err );
				$t->contains( "($expected)", $err );
			}
			$t->contains( "'helo'", $text() );
			[ $code, $out, $err ] = $cli( [ 'review', $id, '--action=approve', '--approved-files=sample.php', '--manifest-sha256=' . trim( $cli( [ 'inspect', $id, '--porcelain' ] )[1] ), '--format=json', '--user=admin' ] );
			$done                 = json_decode( $out, true );
			$t->same( [ 0, 'approve', [ $path . 'sample.php' ], 'example-host/git-apply' ], [ $code, $done['action'] ?? '', $done['approved_files'] ?? '', $done['result']['adapter'] ?? '' ], $err );
			$t->contains( "'hello'", $text() );
			$made = $t->made();
			$t->tamper( $made );
			[ $code, $out, $err ] = $cli( [ 'review', $made['run']['run_id'], '--action=request-changes', '--porcelain' ] );
			$t->same( 0, $code, $err );
			$t->contains( 'The bundle does not verify', $err );
			$t->contains( '#', $out );
		}
	);
	$t->test(
		'cli: artifacts stage-apply needs a store of pending actions and writes no file',
		static function () use ( $t, $cli, $text ): void {
			$made = $t->made();
			$id   = $made['run']['run_id'];
			[ $code, $out, $err ] = $cli( [ 'stage-apply', $id, '--all' ] );
			$t->same( [ 1, '' ], [ $code, $out ] );
			$t->contains( '(wp_codebox_pending_apply_unavailable)', $err );
			$t->same( 0, $t->wp( [ 'plugin', 'activate', 'host-pending-actions' ] )[0] );
			$staged = $cli( [ 'stage-apply', $id, '--all', '--summary=Fix it', '--for-user=1', '--format=json' ] );
			$bound  = $cli( [ 'stage-apply', $id, '--all', '--porcelain' ] );
			$t->wp( [ 'plugin', 'deactivate', 'host-pending-actions' ] );
			$done = json_decode( $staged[1], true );
			$t->same( [ 0, 'pending', 'Fix it' ], [ $staged[0], $done['pending_action']['status'] ?? '', $done['pending_action']['summary'] ?? '' ], $staged[2] );
			$t->contains( '2 changed files wait for a decision. Nothing was written.', $staged[2] );
			$t->same( [ 0, $made['run']['manifest_sha256'] . "\n" ], [ $bound[0], $bound[1] ], $bound[2] );
			$t->contains( "'helo'", $text() );
		}
	);
	$t->test(
		'cli: an exported bundle can be discarded, imported again and reimported over a damaged copy',
		static function () use ( $t, $cli ): void {
			$made = $t->made();
			$id   = $made['run']['run_id'];
			$file = getenv( 'TEST_WORK' ) . '/export-' . $id . '.tar';
			[ $code, $out, $err ] = $cli( [ 'export', $id, '--output=' . $file, '--format=csv', '--fields=run_id,path' ] );
			$t->same( [ 0, "run_id,path\n$id,$file\n" ], [ $code, $out ], $err );
			$t->same( '0600', substr( sprintf( '%o', fileperms( $file ) ), -4 ) );
			[ $code, $bytes ] = $cli( [ 'export', $id, '--output=-' ] );
			$t->same( [ 0, hash_file( 'sha256', $file ) ], [ $code, hash( 'sha256', $bytes ) ] );
			$t->same( 1, $cli( [ 'export', $id, '--output=' . $file ] )[0], 'an existing file is not overwritten' );
			$t->same( [ 0, true ], [ $cli( [ 'export', $id ], [ 'cwd' => getenv( 'TEST_WORK' ) ] )[0], is_file( getenv( 'TEST_WORK' ) . "/$id.tar" ) ] );
			foreach ( [ WP_CONTENT_DIR . '/uploads/x.tar', ABSPATH . 'x.tar', WP_PLUGIN_DIR . '/sample/x.tar' ] as $inside ) {
				wp_mkdir_p( dirname( $inside ) );
				[ $code, , $err ] = $cli( [ 'export', $id, '--output=' . $inside ] );
				$t->same( [ 126, false ], [ $code, file_exists( $inside ) ], $err );
			}
			$t->same( 126, $cli( [ 'export', $id, '--output=' . $file . '2', '--user=admin' ] )[0], 'a user cannot write an export file' );
			$t->same( 0, $cli( [ 'discard', $id, '--yes' ] )[0] );
			[ $code, $out, $err ] = $cli( [ 'import', '-', '--format=csv', '--fields=status,trusted' ], [ 'stdin' => $bytes ] );
			$t->same( [ 0, "status,trusted\ncreated,true\n" ], [ $code, $out ], $err );
			$t->contains( 'its signature is trusted here', $err );
			[ $code, $out, $err ] = $cli( [ 'import', basename( $file ), '--expected-artifact-id=' . $made['artifact_id'], '--porcelain' ], [ 'cwd' => dirname( $file ) ] );
			$t->same( [ 0, "$id\n" ], [ $code, $out ], $err );
			$t->contains( 'The bundle is already stored', $err );
			$t->tamper( $made );
			[ $code, , $err ] = $cli( [ 'import', $file ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_artifact_import_conflict)', $err );
			[ $code, $out, $err ] = $cli( [ 'reimport', $made['artifact_id'], $file, '--format=ids' ] );
			$t->same( [ 0, $id ], [ $code, trim( $out ) ], $err );
			$t->contains( 'The bundle is replaced', $err );
			[ $code, , $err ] = $cli( [ 'reimport', 'artifact-bundle-sha256-' . str_repeat( '0', 64 ), $file ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_artifact_import_id_mismatch)', $err );
			[ $code, , $err ] = $cli( [ 'import', '/nowhere/x.tar' ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_artifact_import_source_invalid)', $err );
		}
	);
	$t->test(
		'cli: artifacts replay exits with 0 when the results match and with 3 when they differ',
		static function () use ( $t, $cli ): void {
			$id = $t->made()['run']['run_id'];
			[ $code, $out, $err ] = $cli( [ 'replay', $id, '--format=json' ] );
			$done                 = json_decode( $out, true );
			$t->same( [ 0, true, $id ], [ $code, $done['identical'] ?? null, $done['original']['run_id'] ?? '' ], $err );
			$t->contains( 'agent | agent says fix', $err );
			$t->contains( 'The replay had the same result.', $err );
			file_put_contents( WP_PLUGIN_DIR . '/sample/inc/more.php', "<?php\n" );
			[ $code, $out, $err ] = $cli( [ 'replay', $id, '--format=csv', '--fields=kind,status' ] );
			$t->same( [ 3, "kind,status\nbaseline,different\nchanged-file,only-in-original\n" ], [ $code, $out ], $err );
			$t->contains( 'The replay differs in 2 points.', $err );
			$again = $cli( [ 'replay', $id, '--replay-run-id=' . $done['replay']['run_id'], '--porcelain' ] );
			$t->same( [ 3, $done['replay']['run_id'] . "\n" ], [ $again[0], $again[1] ], $again[2] );
			$t->same( 126, $cli( [ 'replay', $id, '--user=editor' ] )[0] );
			[ $code, , $err ] = $cli( [ 'replay', 'run_000000000000' ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_artifact_not_found)', $err );
		}
	);
};
