<?php
/**
 * Export, import and reimport of bundles, and the diff of each file.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$file    = '/wordpress/wp-content/plugins/sample/sample.php';
	$export  = static fn( array $made ): array => $t->ok( $t->ability( 'export-artifact-bundle', [ 'artifact_id' => $made['run']['run_id'] ] ) );
	$import  = static fn( array $input ): mixed => $t->ability( 'import-artifact-bundle', $input );
	$discard = static fn( array $made ): array => $t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
	// Creates a directory below an installed plugin, which a user may read.
	$near = static function ( string $name ): string {
		$directory = WP_PLUGIN_DIR . '/host-plugin/' . $name . '-' . bin2hex( random_bytes( 4 ) );
		wp_mkdir_p( $directory );
		return (string) realpath( $directory );
	};
	$copy = static function ( string $from, string $to ): string {
		exec( sprintf( 'cp -r %s/. %s', escapeshellarg( $from ), escapeshellarg( $to ) ) );
		return $to;
	};
	$tidy = static fn() => exec( 'rm -rf ' . escapeshellarg( WP_PLUGIN_DIR . '/host-plugin' ) . '/near-*' );

	$t->test(
		'transfer: get-artifact-diff returns the patch of each file and refuses a tampered bundle',
		static function () use ( $t, $file ): void {
			$made = $t->made();
			$id   = [ 'artifact_id' => $made['run']['run_id'] ];
			$all  = $t->ok( $t->ability( 'get-artifact-diff', $id ) );
			$t->same( [ 'wp-codebox/artifact-diff/v1', 2, 2 ], [ $all['schema'], $all['total'], count( $all['files'] ) ] );
			$one = $t->ok( $t->ability( 'get-artifact-diff', $id + [ 'files' => [ $file ] ] ) );
			$t->same( [ [ $file ], 'modified', 1, 1, 2 ], [ array_column( $one['files'], 'path' ), $one['files'][0]['status'], $one['files'][0]['insertions'], $one['files'][0]['deletions'], $one['total'] ] );
			$t->contains( 'hello', $one['files'][0]['patch'] );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'get-artifact-diff', $id + [ 'files' => [ $file, '/etc/passwd' ] ] ) );
			$t->tamper( $made );
			$t->error( 'wp_codebox_artifact_verification_failed', 400, $t->ability( 'get-artifact-diff', $id ) );
			$bytes = $t->made( 'latin1' );
			$rows  = $t->ok( $t->ability( 'get-artifact-diff', [ 'artifact_id' => $bytes['run']['run_id'] ] ) )['files'];
			$t->true( false !== json_encode( $rows ), 'the answer cannot be encoded as JSON' );
			$t->same( (string) file_get_contents( $bytes['paths']['patch'] ), $rows[0]['patch'] ?? base64_decode( $rows[0]['patch_base64'] ) );
		}
	);
	$t->test(
		'transfer: exporting a bundle twice gives the same archive, and each export is audited',
		static function () use ( $t, $export ): void {
			$made = $t->made();
			$a    = $export( $made );
			$b    = $export( $made );
			$t->same( [ 'wp-codebox/artifact-export/v1', 'application/x-tar', $made['run']['run_id'] . '.tar', $a['archive'], $a['sha256'] ], [ $a['schema'], $a['media_type'], $a['filename'], $b['archive'], $b['sha256'] ] );
			$bytes = (string) base64_decode( $a['archive'], true );
			$t->same( [ strlen( $bytes ), hash( 'sha256', $bytes ) ], [ $a['bytes'], $a['sha256'] ] );
			$t->same( [ 'export', 'success', $made['run']['run_id'], $a['sha256'] ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['run_id'], $t->audited()[0]['result']['sha256'] ] );
			$t->tamper( $made );
			$t->error( 'wp_codebox_artifact_verification_failed', 400, $t->ability( 'export-artifact-bundle', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			$t->same( [ 'export', 'failure' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'] ] );
		}
	);
	$t->test(
		'transfer: an exported bundle can be imported again, and can be applied if this host signed it',
		static function () use ( $t, $export, $import, $discard, $file ): void {
			$made    = $t->made();
			$archive = $export( $made )['archive'];
			$same    = $t->ok( $import( [ 'archive' => $archive, 'metadata' => [ 'from' => 'here' ] ] ) );
			$t->same( [ true, 'wp-codebox/artifact-result-envelope/v1', 'import-artifact-bundle', 'existing', $made['artifact_id'], $made['run']['run_id'], true, [ 'from' => 'here' ] ], [ $same['success'], $same['schema'], $same['operation'], $same['status'], $same['artifact_id'], $same['run_id'], $same['trusted'], $same['metadata'] ] );
			$t->same( [ true, 'signed-by-this-host', 'archive' ], [ $same['verification']['valid'], $same['verification']['signature']['status'], $same['source']['kind'] ] );
			$t->true( ! isset( $same['verification']['bundleDirectory'] ), 'the answer contains a path of the host' );
			$discard( $made );
			$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( 'get-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			$new = $t->ok( $import( [ 'archive' => $archive, 'expected_artifact_id' => $made['artifact_id'], 'expected_content_digest' => substr( $made['artifact_id'], -64 ) ] ) );
			$t->same( [ 'created', $made['run']['manifest_sha256'], $made['run']['run_id'] ], [ $new['status'], $new['manifest_sha256'], $new['artifact']['run_id'] ] );
			$t->same( [ 'import', 'success', 'import-artifact-bundle', 'created' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['operation'], $t->audited()[0]['result']['status'] ] );
			$t->same( 'existing', $t->ok( $import( [ 'archive' => $archive ] ) )['status'], 'idempotent' );
			$t->ok( $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] ) );
		}
	);
	$t->test(
		'transfer: reimport replaces a damaged bundle, and import does so only with the replace option',
		static function () use ( $t, $export, $import ): void {
			$made    = $t->made();
			$archive = $export( $made )['archive'];
			$earlier = $t->ok( $import( [ 'archive' => $archive ] ) );
			$t->tamper( $made );
			$t->error( 'wp_codebox_artifact_import_conflict', 409, $import( [ 'archive' => $archive ] ) );
			$t->same( [ 'import', 'failure', 'wp_codebox_artifact_import_conflict' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
			$again = static fn( array $input ): mixed => $t->ability( 'reimport-artifact-bundle', $input );
			$t->error( 'wp_codebox_artifact_id_missing', 400, $again( [ 'archive' => $archive ] ) );
			$t->error( 'wp_codebox_artifact_import_source_missing', 400, $again( [ 'artifact_result' => $earlier ] ) );
			$t->error( 'wp_codebox_input_invalid', 400, $again( [ 'archive' => $archive, 'artifact_result' => $earlier, 'artifact_id' => 'artifact-bundle-sha256-' . str_repeat( '0', 64 ) ] ) );
			$t->error( 'wp_codebox_artifact_import_id_mismatch', 409, $again( [ 'archive' => $archive, 'artifact_id' => 'artifact-bundle-sha256-' . str_repeat( '0', 64 ) ] ) );
			$t->same( false, $t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) )['verification']['valid'] );
			$done = $t->ok( $again( [ 'archive' => $archive, 'artifact_result' => $earlier ] ) );
			$t->same( [ 'reimport-artifact-bundle', 'updated', true ], [ $done['operation'], $done['status'], $done['verification']['valid'] ] );
			$t->same( 'existing', $t->ok( $again( [ 'archive' => $archive, 'artifact_ref' => [ 'id' => $made['artifact_id'] ] ] ) )['status'], 'idempotent' );
			$t->tamper( $made );
			$t->same( 'updated', $t->ok( $import( [ 'archive' => $archive, 'replace' => true ] ) )['status'] );
		}
	);
	$t->test(
		'transfer: an application password with artifact:write adds bundles and replaces none',
		static function () use ( $t, $export ): void {
			$made    = $t->made();
			$archive = $export( $made )['archive'];
			$other   = $export( $t->made() )['archive'];
			add_filter( 'wp_is_application_passwords_available', '__return_true' );
			$known = get_user_by( 'login', 'importer' );
			$user  = $known ? $known->ID : (int) wp_insert_user( [ 'user_login' => 'importer', 'user_pass' => wp_generate_password(), 'user_email' => 'i@example.org', 'role' => 'subscriber' ] );
			$uuid  = WP_Application_Passwords::create_new_application_password( $user, [ 'name' => 'i ' . wp_rand() ] )[1]['uuid'];
			update_site_option( WPCodebox\Settings::TRUSTED_CALLERS, [ $uuid => [ 'artifact:write' ] ] );
			$t->tamper( $made );
			$state = static fn(): string => (string) hash_file( 'sha256', $made['paths']['patch'] );
			$found = $state();
			try {
				wp_set_current_user( $user );
				$GLOBALS['wp_rest_application_password_uuid'] = $uuid;
				$again = [ 'archive' => $archive, 'artifact_id' => $made['artifact_id'] ];
				$t->error( 'wp_codebox_forbidden', 403, $t->ability( 'import-artifact-bundle', [ 'archive' => $archive, 'replace' => true ] ) );
				$t->same( [ 'import', 'failure', 'wp_codebox_forbidden' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
				$t->error( 'wp_codebox_forbidden', 403, $t->ability( 'reimport-artifact-bundle', $again + [ 'replace' => true ] ) );
				foreach ( [ [ 'import-artifact-bundle', [ 'archive' => $archive ] ], [ 'reimport-artifact-bundle', $again ], [ 'reimport-artifact-bundle', $again + [ 'replace' => false ] ] ] as [ $ability, $input ] ) {
					$t->error( 'wp_codebox_artifact_import_conflict', 409, $t->ability( $ability, $input ) );
				}
				$t->same( $found, $state(), 'the stored bundle' );
				$t->same( 'existing', $t->ok( $t->ability( 'import-artifact-bundle', [ 'archive' => $other ] ) )['status'], 'positive control: an equal bundle' );
			} finally {
				$GLOBALS['wp_rest_application_password_uuid'] = null;
				delete_site_option( WPCodebox\Settings::TRUSTED_CALLERS );
				remove_filter( 'wp_is_application_passwords_available', '__return_true' );
			}
			$t->as( 'administrator' );
			$t->same( 'updated', $t->ok( $t->ability( 'reimport-artifact-bundle', $again ) )['status'], 'positive control: a reviewer' );
		}
	);
	$t->test(
		'transfer: an import with a missing, invalid or mismatched source is refused and audited',
		static function () use ( $t, $export, $import ): void {
			$made    = $t->made();
			$archive = $export( $made )['archive'];
			$tries   = [
				[ 'wp_codebox_artifact_import_source_missing', 400, [] ],
				[ 'wp_codebox_artifact_import_source_missing', 400, [ 'archive' => '', 'source_bundle_path' => ' ' ] ],
				[ 'wp_codebox_input_invalid', 400, [ 'archive' => $archive, 'source_bundle_path' => '/tmp' ] ],
				[ 'wp_codebox_artifact_import_source_invalid', 400, [ 'archive' => '!!!' ] ],
				[ 'wp_codebox_artifact_import_source_invalid', 400, [ 'archive' => base64_encode( 'no archive' ) ] ],
				[ 'wp_codebox_artifact_too_large', 413, [ 'archive' => str_repeat( 'AAAA', 5592407 ) ] ],
				[ 'wp_codebox_artifact_import_id_mismatch', 409, [ 'archive' => $archive, 'expected_artifact_id' => 'artifact-bundle-sha256-' . str_repeat( '0', 64 ) ] ],
				[ 'wp_codebox_artifact_import_digest_mismatch', 409, [ 'archive' => $archive, 'expected_content_digest' => str_repeat( '0', 64 ) ] ],
			];
			foreach ( $tries as [ $code, $status, $input ] ) {
				$t->error( $code, $status, $import( $input ) );
				$t->same( [ 'import', 'failure', $code ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
			}
			$t->ok( $import( [ 'archive' => $archive ] ) );
		}
	);
	$t->test(
		'transfer: a user can import only from directories that the user may mount',
		static function () use ( $t, $import, $discard, $near, $copy, $tidy ): void {
			$made    = $t->made();
			$outside = getenv( 'TEST_WORK' ) . '/bundle-' . bin2hex( random_bytes( 4 ) );
			$inside  = $copy( $made['artifacts'], $near( 'near' ) );
			mkdir( $outside, 0755 );
			$copy( $made['artifacts'], $outside );
			$discard( $made );
			$link = $near( 'near' ) . '/link';
			symlink( $outside, $link );
			foreach ( [ $outside, $outside . '/none', '/etc/shadow', ABSPATH, '/', $link, $link . '/manifest.json', $made['artifacts'] ] as $path ) {
				foreach ( [ 'source_bundle_path', 'source_manifest_path' ] as $field ) {
					$t->error( 'wp_codebox_mount_denied', 403, $import( [ $field => $path ] ) );
				}
			}
			foreach ( [ 'relative', $inside . '/../x', 'phar://' . $inside, "$inside\0", "$inside\n" ] as $path ) {
				$t->error( 'wp_codebox_input_invalid', 400, $import( [ 'source_bundle_path' => $path ] ) );
			}
			$t->error( 'wp_codebox_artifact_import_source_invalid', 400, $import( [ 'source_bundle_path' => $inside . '/none' ] ) );
			$t->error( 'wp_codebox_artifact_import_source_invalid', 400, $import( [ 'source_manifest_path' => $inside . '/metadata.json' ] ) );
			$t->same( [ 'created', 'path', $inside ], array_values( array_intersect_key( $t->ok( $import( [ 'source_bundle_path' => $inside ] ) ), [ 'status' => 1 ] ) + [ 1 => 'path', 2 => $inside ] ), 'positive control' );
			$t->same( 'existing', $t->ok( $import( [ 'source_manifest_path' => $inside . '/manifest.json' ] ) )['status'] );
			$again = $t->ok( $t->ability( 'reimport-artifact-bundle', [ 'artifact_result' => $t->ok( $import( [ 'source_bundle_path' => $inside ] ) ) ] ) );
			$t->same( [ 'existing', [ 'kind' => 'path', 'path' => $inside ] ], [ $again['status'], $again['source'] ] );
			// The operator may import from directories outside plugins and themes.
			[ $code, , $err ] = $t->wp( [ 'codebox', 'artifacts', 'import', $outside, '--user=admin' ] );
			$t->same( 126, $code, $err );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'import', $outside, '--porcelain' ] );
			$t->same( [ 0, $made['run']['run_id'] . "\n" ], [ $code, $out ], $err );
			$tidy();
		}
	);
	$t->test(
		'transfer: a tampered bundle is not imported',
		static function () use ( $t, $import, $discard, $near, $copy, $tidy ): void {
			$made   = $t->made();
			$inside = $copy( $made['artifacts'], $near( 'near' ) );
			$patch  = (string) file_get_contents( $inside . '/files/patch.diff' );
			$discard( $made );
			file_put_contents( $inside . '/files/patch.diff', str_replace( 'hello', 'hacked', $patch ) );
			$t->error( 'wp_codebox_artifact_import_source_invalid', 400, $import( [ 'source_bundle_path' => $inside ] ) );
			$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( 'get-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			file_put_contents( $inside . '/files/patch.diff', $patch );
			$t->same( 'created', $t->ok( $import( [ 'source_bundle_path' => $inside ] ) )['status'], 'positive control' );
			$tidy();
		}
	);
	if ( 'fake' === $t->phase ) {
		$t->test(
			'transfer: importing a bundle does not make its signature trusted',
			static function () use ( $t, $export, $import, $file ): void {
				$made    = $t->made();
				$archive = $export( $made )['archive'];
				putenv( 'WP_CODEBOX_FAKE_SIGNATURE=signed-by-unknown' );
				$done = $t->ok( $import( [ 'archive' => $archive ] ) );
				$t->same( [ false, 'signed-by-unknown' ], [ $done['trusted'], $done['verification']['signature']['status'] ] );
				$t->error( 'wp_codebox_artifact_untrusted', 403, $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] ) );
			}
		);
		$t->test(
			'transfer: an archive too large for an answer is refused, and can be exported to a file',
			static function () use ( $t ): void {
				$made = $t->made();
				putenv( 'WP_CODEBOX_FAKE_ARCHIVE_LIMIT=10' );
				$t->error( 'wp_codebox_artifact_too_large', 413, $t->ability( 'export-artifact-bundle', [ 'artifact_id' => $made['run']['run_id'] ] ) );
				$path = getenv( 'TEST_WORK' ) . '/large-' . $made['run']['run_id'] . '.tar';
				$t->same( 0, $t->wp( [ 'codebox', 'artifacts', 'export', $made['run']['run_id'], '--output=' . $path ] )[0], 'the archive can be exported to a file' );
			}
		);
		return;
	}
	$t->test(
		'transfer: a bundle of another host is applied only while the settings name its key',
		static function () use ( $t, $import, $file ): void {
			// Another state directory has another signing key.
			$state = dirname( (string) WPCodebox\Native\Extension::info()['state_dir'] ) . '/.state-other-' . bin2hex( random_bytes( 4 ) );
			exec( sprintf( 'cp -rp %s %s && rm -rf %s/*', escapeshellarg( WPCodebox\Native\Extension::info()['state_dir'] ), escapeshellarg( $state ), escapeshellarg( $state ) ) );
			try {
				$t->made();
				$flags = array_map( static fn( string $flag ): string => str_starts_with( $flag, 'wp_codebox.state_dir=' ) ? 'wp_codebox.state_dir=' . $state : $flag, $t->php_flags );
				[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Fix it', '--plugin=sample', '--agent-command=php agent.php fix', '--porcelain' ], [], [ 'php_flags' => $flags ] );
				$t->same( 0, $code, $err );
				$id = trim( $out );
				$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( 'get-artifact', [ 'artifact_id' => $id ] ) );
				[ $code, $archive, $err ] = $t->wp( [ 'codebox', 'artifacts', 'export', $id, '--output=-' ], [], [ 'php_flags' => $flags ] );
				$t->same( 0, $code, $err );
			} finally {
				exec( 'rm -rf ' . escapeshellarg( $state ) );
			}
			$done = $t->ok( $import( [ 'archive' => base64_encode( $archive ) ] ) );
			$t->same( [ 'created', false, true, 'signed-by-unknown' ], [ $done['status'], $done['trusted'], $done['verification']['valid'], $done['verification']['signature']['status'] ] );
			$t->ok( $t->ability( 'get-artifact-diff', [ 'artifact_id' => $id ] ) );
			foreach ( [ 'apply-approved-artifact', 'apply-artifact-preflight', 'stage-artifact-apply' ] as $name ) {
				$t->error( 'wp_codebox_artifact_untrusted', 403, $t->ability( $name, [ 'artifact_id' => $id, 'approved_files' => [ $file ] ] ) );
			}
			$t->error( 'wp_codebox_artifact_untrusted', 403, $t->ability( 'review-artifact', [ 'artifact_id' => $id, 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
			$t->error( 'wp_codebox_artifact_untrusted', 403, $t->ability( 'replay-artifact', [ 'artifact_id' => $id ] ) );
			$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $id, 'action' => 'reject' ] ) );
			$t->contains( "'helo'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) );
			$key = (string) $done['verification']['signature']['key_id'];
			// A caller cannot name trusted keys in the input of the ability.
			$t->error( 'ability_invalid_input', 400, $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $id, 'approved_files' => [ $file ], 'trusted_keys' => [ $key ] ] ) );
			try {
				update_site_option( 'wp_codebox_trusted_keys', [ $key ] );
				$t->same( 'signed-by-known', $t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $id ] ) )['verification']['signature']['status'] );
				$again = $t->ok( $import( [ 'archive' => base64_encode( $archive ) ] ) );
				$t->same( [ 'existing', true, 'signed-by-known' ], [ $again['status'], $again['trusted'], $again['verification']['signature']['status'] ] );
				$t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $id, 'approved_files' => [ $file ] ] ) );
				$applied = $t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $id, 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
				$t->same( [ true, 'signed-by-known' ], [ $applied['success'], $applied['verification']['signature']['status'] ] );
				$t->contains( "'hello'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) );
			} finally {
				delete_site_option( 'wp_codebox_trusted_keys' );
			}
			$t->made();
			$t->same( 'signed-by-unknown', $t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $id ] ) )['verification']['signature']['status'] );
			$t->error( 'wp_codebox_artifact_untrusted', 403, $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $id, 'approved_files' => [ $file ] ] ) );
		}
	);
	$t->test(
		'transfer: tampered, malformed and path-traversing archives are refused',
		static function () use ( $t, $export, $import, $discard ): void {
			$made  = $t->made();
			$bytes = (string) base64_decode( $export( $made )['archive'] );
			$work  = getenv( 'TEST_WORK' ) . '/tar-' . bin2hex( random_bytes( 4 ) );
			mkdir( $work . '/good', 0755, true );
			file_put_contents( $work . '/good.tar', $bytes );
			exec( sprintf( 'cd %s && tar -xf good.tar -C good', escapeshellarg( $work ) ) );
			$manifest = glob( $work . '/good/{manifest.json,*/manifest.json}', GLOB_BRACE );
			$t->same( 1, count( $manifest ) );
			$root = dirname( $manifest[0] );
			$discard( $made );
			// Changes a copy of the unpacked bundle and packs it as a tar archive.
			$shape   = static function ( string $commands, string $flags = '' ) use ( $work, $root ): string {
				$copy = $work . '/bad';
				exec( sprintf( 'rm -rf %1$s && cp -r %2$s %1$s && cd %1$s && { %3$s ; } && tar %4$s --owner=0 --group=0 -cf ../bad.tar -C .. $(cd .. && echo bad)', escapeshellarg( $copy ), escapeshellarg( $root ), $commands, $flags ), $said, $code );
				return (string) base64_encode( (string) file_get_contents( $work . '/bad.tar' ) );
			};
			$hostile = [
				'tampered member'    => $shape( 'sed -i s/hello/hacked/ files/patch.diff' ),
				'unlisted member'    => $shape( 'echo x >extra.php' ),
				'missing member'     => $shape( 'rm files/review.json' ),
				'symlink'            => $shape( 'rm files/review.json && ln -s /etc/passwd files/review.json' ),
				'hardlink'           => $shape( 'rm files/review.json && ln manifest.json files/review.json' ),
				'fifo'               => $shape( 'mkfifo pipe' ),
				'traversal'          => $shape( 'true', '-P --transform=s#^bad/files/review.json#bad/../../review.json#' ),
				'absolute name'      => $shape( 'true', '-P --transform=s#^bad/files/review.json#/tmp/review.json#' ),
				'cut off'            => base64_encode( substr( $bytes, 0, intdiv( strlen( $bytes ), 2 ) ) ),
				'random bytes'       => base64_encode( random_bytes( 4096 ) ),
			];
			foreach ( $hostile as $what => $archive ) {
				$answer = $import( [ 'archive' => $archive ] );
				$t->true( is_wp_error( $answer ) && 400 === $answer->get_error_data()['status'], $what . ': ' . json_encode( $answer ) );
				$t->same( 'wp_codebox_artifact_import_source_invalid', $answer->get_error_code(), $what );
				$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( 'get-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			}
			$t->same( 'created', $t->ok( $import( [ 'archive' => base64_encode( $bytes ) ] ) )['status'], 'positive control' );
			exec( 'rm -rf ' . escapeshellarg( $work ) );
		}
	);
};
