<?php
/**
 * The git branch adapter and the download of approved files, with the real extension.
 */

declare(strict_types=1);

use WPCodebox\DirectApply\DirectApply;
use WPCodebox\DirectApply\HealthCheck;
use WPCodebox\DirectApply\RecoveryLink;
use WPCodebox\DirectApply\SensitiveFiles;
use WPCodebox\GitBranch\GitBranch;
use WPCodebox\GitBranch\Repository;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Extension;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$path  = '/wordpress/wp-content/plugins/sample/';
	$text  = static fn(): string => (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' );
	$apply = static fn( array $made, array $files ): mixed => $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => $files ] );
	$next  = static fn( array $made ): array => $t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => array_column( $made['changed_files'], 'path' ) ] ) );
	$git   = static fn( string $directory, string $command ): string => trim( (string) shell_exec( 'git -c safe.directory=* -C ' . escapeshellarg( $directory ) . ' ' . $command . ' 2>&1' ) );
	// A repository below the mount root; its directory wp-content/plugins/sample holds the plugin as it ships.
	$repository = static function ( string $below = 'roots' ) use ( $t ): string {
		$directory = getenv( 'TEST_WORK' ) . '/' . $below . '/repository-' . bin2hex( random_bytes( 4 ) );
		wp_mkdir_p( $directory . '/wp-content/plugins' );
		$owner = fileowner( Extension::info()['state_dir'] );
		exec( sprintf( 'cd %1$s && git init -q -b main . && cp -r %2$s/sample wp-content/plugins/ && cp %2$s/agent.php wp-content/plugins/sample/ && git add -A && git -c user.name=t -c user.email=t@localhost commit -q -m base && printf "#!/bin/sh\ntouch %1$s/hook-ran\n" >.git/hooks/reference-transaction && chmod +x .git/hooks/* && chown -R %3$d .', escapeshellarg( $directory ), escapeshellarg( (string) getenv( 'TEST_FIXTURES' ) ), $owner ), $said, $code );
		$t->same( 0, $code, implode( "\n", $said ) );
		return (string) realpath( $directory );
	};
	$set  = static fn( array $fields ): bool => update_site_option( Settings::GIT_BRANCH, $fields );
	$with = static function ( array $fields, callable $body ) use ( $t, $set ): mixed {
		$set( $fields );
		try {
			return $t->hosts(
				[],
				static function () use ( $body ): mixed {
					$settings = new Settings();
					$site     = new Site( new InstalledCode() );
					( new GitBranch( $settings, $site, new Repository( $settings ) ) )->register();
					( new DirectApply( $settings, $site, new SensitiveFiles(), new HealthCheck( $settings ), new RecoveryLink( $site ) ) )->register();
					return $body();
				}
			);
		} finally {
			delete_site_option( Settings::GIT_BRANCH );
			delete_site_option( Settings::DIRECT_APPLY );
		}
	};

	$t->test(
		'git branch: approved files become a commit, no file of the site changes, and the audit log has branch and commit',
		static function () use ( $t, $repository, $with, $apply, $next, $git, $text, $path ): void {
			$directory = $repository();
			$made      = $t->made();
			$before    = $text();
			$with(
				[ 'repository' => $directory, 'directory' => 'wp-content/{path}', 'author' => 'Jo Doe <jo@example.org>' ],
				static function () use ( $t, $directory, $made, $apply, $next, $git, $path ): void {
					update_site_option( Settings::DIRECT_APPLY, true );
					$ready = $next( $made );
					$shown = static fn( string $name ): array => $t->ok( $t->ability( $name, [ 'artifact_id' => $made['run']['run_id'] ] ) );
					$t->same( [ 'codebox-git-branch', [], 'codebox-git-branch', 'codebox-git-branch' ], [ $ready['adapter'], $ready['confirm_files'], $shown( 'inspect-artifact' )['adapter'], $shown( 'get-artifact' )['adapter'] ] );
					$done   = $t->ok( $apply( $made, [ $path . 'sample.php' ] ) );
					$result = $done['result'];
					$branch = 'codebox/' . $made['run']['run_id'];
					$t->same( [ true, 'codebox-git-branch', 'committed', $branch, $result['commit'], [ $path . 'sample.php' ] ], [ $done['success'], $result['adapter'], $result['status'], $result['branch'], $result['audit_reference'], $result['applied_files'] ] );
					$t->same( $result['commit'], $git( $directory, 'rev-parse ' . $branch ) );
					$t->same( 'wp-content/plugins/sample/sample.php', $git( $directory, "diff --name-only main $branch" ) );
					$t->contains( "'hello'", $git( $directory, "show $branch:wp-content/plugins/sample/sample.php" ) );
					$t->same( 'Jo Doe <jo@example.org> Test', $git( $directory, "log -1 --format='%an <%ae> %cn' $branch" ) );
					$t->contains( "Codebox-Manifest: sha256:{$done['manifest_sha256']}\nCodebox-Patch: sha256:{$done['patch_sha256']}\nCodebox-Approved-By: admin", $git( $directory, "log -1 --format=%B $branch" ) );
					$t->same( false, str_contains( (string) wp_json_encode( $result ), $directory ), 'the result tells a host path' );
					$line = $t->audited()[0];
					$t->same( [ 'apply', 'success', $branch, $result['commit'] ], [ $line['event'], $line['status'], $line['result']['branch'], $line['result']['commit'] ] );
					// Applying the other file adds a second commit to the branch; after another program has moved the branch, an apply is refused.
					$t->ok( $apply( $made, [ $path . 'inc/more.php' ] ) );
					$t->same( '2', $git( $directory, "rev-list --count main..$branch" ) );
					$t->same( [ 'applied', 'applied' ], [ $shown( 'inspect-artifact' )['state'], $shown( 'get-artifact' )['state'] ] );
					$git( $directory, "-c core.hooksPath=/dev/null update-ref refs/heads/$branch main" );
					exec( 'chown -R ' . fileowner( Extension::info()['state_dir'] ) . ' ' . escapeshellarg( $directory ) );
					$t->error( 'wp_codebox_git_branch_conflict', 409, $apply( $made, [ $path . 'inc/more.php' ] ) );
					$t->same( [ 'apply', 'failure' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'] ] );
				}
			);
			$t->same( [ $before, false ], [ $text(), file_exists( $directory . '/hook-ran' ) ] );
		}
	);
	$t->test(
		'git branch: another plugin comes first, direct apply only without a repository, and without both there is none',
		static function () use ( $t, $repository, $with, $next, $git, $apply ): void {
			$directory = $repository();
			$made      = $t->made();
			$with(
				[ 'repository' => $directory, 'directory' => 'wp-content/{path}' ],
				static function () use ( $t, $next, $made, $git, $directory, $apply ): void {
					update_site_option( Settings::DIRECT_APPLY, true );
					$answer = static fn( mixed $result, array $payload ): array => [ 'schema' => 'wp-codebox/apply-result/v1', 'adapter' => 'other', 'status' => 'applied', 'audit_reference' => 'x', 'target' => [ 'x' => 'y' ], 'applied_files' => $payload['approved_files'] ];
					add_filter( 'wp_codebox_apply_approved_artifact', $answer, 9, 2 );
					$t->same( 'plugin', $next( $made )['adapter'] );
					$t->same( 'other', $t->ok( $apply( $made, array_column( $made['changed_files'], 'path' ) ) )['result']['adapter'] );
					$t->same( 'main', $git( $directory, 'branch --format="%(refname:short)"' ) );
					remove_filter( 'wp_codebox_apply_approved_artifact', $answer, 9 );
					$t->same( 'codebox-git-branch', $next( $made )['adapter'] );
					delete_site_option( Settings::GIT_BRANCH );
					$t->same( 'codebox-direct', $next( $made )['adapter'] );
					delete_site_option( Settings::DIRECT_APPLY );
					$t->same( 'none', $next( $made )['adapter'] );
				}
			);
		}
	);
	$t->test(
		'git branch: the setting takes a repository below the mount roots only, and refuses names that git or the rules refuse',
		static function () use ( $t, $repository, $set ): void {
			$good = [ 'repository' => $repository(), 'directory' => '.', 'branch' => 'x/{run}', 'base' => 'trunk', 'author' => 'Jo <jo@example.org>', 'committer' => 'Site <site@example.org>' ];
			$set( $good );
			$t->same( $good, get_site_option( Settings::GIT_BRANCH ) );
			symlink( Extension::info()['state_dir'], dirname( $good['repository'] ) . '/state' );
			foreach ( [
				[ 'repository' => $repository( 'elsewhere' ) ],
				[ 'repository' => Extension::info()['state_dir'] ],
				[ 'repository' => dirname( $good['repository'] ) . '/state' ],
				[ 'repository' => $good['repository'] . '/none' ],
				[ 'repository' => 'relative' ],
				[ 'branch' => '-x' ],
				[ 'branch' => 'a..b' ],
				[ 'branch' => 'a b' ],
				[ 'branch' => 'trunk' ],
				[ 'branch' => 'x/{other}' ],
				[ 'base' => 'x.lock' ],
				[ 'base' => "x\n" . 'y' ],
				[ 'directory' => '../x' ],
				[ 'directory' => '/x' ],
				[ 'directory' => 'a//b' ],
				[ 'author' => 'Jo' ],
				[ 'committer' => 'Jo <x> <y@example.org>' ],
				[ 'unknown' => 'x' ],
			] as $bad ) {
				$set( $bad + $good );
				$t->same( $good, get_site_option( Settings::GIT_BRANCH ), (string) wp_json_encode( $bad ) );
			}
			unlink( dirname( $good['repository'] ) . '/state' );
			$set( [ 'repository' => '' ] );
			$t->same( [], get_site_option( Settings::GIT_BRANCH ) );
			delete_site_option( Settings::GIT_BRANCH );
		}
	);
	$t->test(
		'git branch: code outside of the work tree needs a directory, and a site that forbids file changes may still commit',
		static function () use ( $t, $repository, $with, $apply, $path, $git ): void {
			$directory = $repository();
			$made      = $t->made();
			$with( [ 'repository' => $directory ], static fn() => $t->error( 'wp_codebox_apply_target_mismatch', 409, $apply( $made, [ $path . 'sample.php' ] ) ) );
			$with(
				[ 'repository' => $directory, 'directory' => 'wp-content/plugins/{name}' ],
				static function () use ( $t, $apply, $made, $path ): void {
					// A filter of the site can forbid file changes.
					$t->filtered( 'file_mod_allowed', '__return_false', static fn() => $t->error( 'wp_codebox_file_changes_disallowed', 403, $apply( $made, [ $path . 'sample.php' ] ) ) );
					$t->ok( $apply( $made, [ $path . 'sample.php' ] ) );
				}
			);
			$outside = $repository( 'elsewhere' );
			update_site_option( Settings::GIT_BRANCH, [ 'directory' => 'wp-content/{path}', 'branch' => 'constant/{run}' ] );
			$run    = [ 'codebox', 'artifacts', 'apply', $made['run']['run_id'], '--all', '--porcelain', '--skip-plugins=host-plugin' ];
			$denied = $t->wp( [ ...$run, '--exec=define( "DISALLOW_FILE_MODS", true );' ] );
			$t->same( [ 126, '' ], [ $denied[0], $denied[1] ], $denied[2] );
			[ $code, $out, $err ] = $t->wp( [ ...$run, '--exec=define( "DISALLOW_FILE_MODS", true ); define( "WP_CODEBOX_GIT_REPOSITORY", "' . $outside . '" );' ] );
			$t->same( [ 0, $git( $outside, 'rev-parse constant/' . $made['run']['run_id'] ) ], [ $code, trim( $out ) ], $err );
			delete_site_option( Settings::GIT_BRANCH );
		}
	);
	$t->test(
		'download: approved files as patch and as zip, without a tampered bundle, unknown files or an existing output file',
		static function () use ( $t, $path, $text ): void {
			file_put_contents( WP_PLUGIN_DIR . '/sample/old.txt', "old\n" );
			$made = $t->made( 'tree' );
			unlink( WP_PLUGIN_DIR . '/sample/old.txt' );
			$run   = $made['run']['run_id'];
			$files = array_column( $made['changed_files'], 'path' );
			$all   = $t->ok( $t->ability( 'download-approved-files', [ 'artifact_id' => $run ] ) );
			$t->same( [ 'patch', 'text/x-diff', "$run.patch", $files ], [ $all['as'], $all['media_type'], $all['filename'], $all['files'] ] );
			$t->same( (string) file_get_contents( $made['paths']['patch'] ), base64_decode( $all['content'], true ) );
			$one = $t->ok( $t->ability( 'download-approved-files', [ 'artifact_id' => $run, 'files' => [ $path . 'old.txt' ] ] ) );
			$t->same( 1, substr_count( (string) base64_decode( $one['content'], true ), 'diff --git' ) );
			$t->same( [ 'export', [ $path . 'old.txt' ], $one['sha256'] ], [ $t->audited()[0]['event'], $t->audited()[0]['approved_files'], $t->audited()[0]['result']['sha256'] ] );
			$zip = $t->ok( $t->ability( 'download-approved-files', [ 'artifact_id' => $run, 'as' => 'zip' ] ) );
			$t->same( $zip['sha256'], $t->ok( $t->ability( 'download-approved-files', [ 'artifact_id' => $run, 'as' => 'zip' ] ) )['sha256'], 'equal files give equal archives' );
			$file = getenv( 'TEST_WORK' ) . '/download-' . bin2hex( random_bytes( 4 ) ) . '.zip';
			[ $code, , $err ] = $t->wp( [ 'codebox', 'artifacts', 'download', $run, '--as=zip', "--output=$file" ] );
			$t->same( [ 0, $zip['sha256'] ], [ $code, hash_file( 'sha256', $file ) ], $err );
			exec( 'python3 -c ' . escapeshellarg( 'import json,sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); print(json.dumps({i.filename: [oct(i.external_attr>>16 & 0o7777), z.read(i).decode()] for i in z.infolist()}))' ) . ' ' . escapeshellarg( $file ), $said );
			$found = json_decode( $said[0], true );
			$t->same( [ [ '0o755', "new\n" ], true ], [ $found['sample/deep/er/new.sh'], str_contains( $found['codebox-deleted-files.txt'][1], 'sample/old.txt' ) ], $said[0] );
			$t->same( 1, $t->wp( [ 'codebox', 'artifacts', 'download', $run, "--output=$file" ] )[0] );
			$t->same( $zip['sha256'], hash_file( 'sha256', $file ), 'an existing file was overwritten' );
			$out = $t->wp( [ 'codebox', 'artifacts', 'download', $run, '--files=old.txt', '--output=-' ] )[1];
			$t->same( (string) base64_decode( $one['content'], true ), $out );
			$t->error( 'wp_codebox_approved_files_invalid', 400, $t->ability( 'download-approved-files', [ 'artifact_id' => $run, 'files' => [ '/etc/passwd' ] ] ) );
			$fixed = $t->made();
			$t->ok( $t->ability( 'download-approved-files', [ 'artifact_id' => $fixed['run']['run_id'], 'as' => 'zip' ] ) );
			$t->tamper( $fixed );
			$t->error( 'wp_codebox_artifact_verification_failed', 400, $t->ability( 'download-approved-files', [ 'artifact_id' => $fixed['run']['run_id'], 'as' => 'zip' ] ) );
		}
	);
	$t->test(
		'download: files of two mounts are in directories with the whole path of their mount',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$mounts = [ [ 'source' => WP_PLUGIN_DIR . '/sample', 'target' => '/workspace/one' ], [ 'source' => WP_PLUGIN_DIR . '/host-plugin', 'target' => '/workspace/other/one' ] ];
			$made   = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Add', 'mounts' => $mounts, 'agent_command' => "sh -c 'echo 1 >/workspace/one/new.txt; echo 2 >/workspace/other/one/new.txt'" ] ) );
			$t->same( 2, count( $made['changed_files'] ) );
			$names = static function ( array $files ) use ( $t, $made ): array {
				$file = (string) tempnam( (string) getenv( 'TEST_WORK' ), 'zip' );
				file_put_contents( $file, base64_decode( $t->ok( $t->ability( 'download-approved-files', [ 'artifact_id' => $made['run']['run_id'], 'as' => 'zip' ] + $files ) )['content'], true ) );
				exec( 'python3 -m zipfile -l ' . escapeshellarg( $file ), $lines );
				return array_map( static fn( string $line ): string => strtok( $line, ' ' ), array_slice( $lines, 1 ) );
			};
			$t->same( [ 'workspace/one/new.txt', 'workspace/other/one/new.txt' ], $names( [] ) );
			$t->same( [ 'one/new.txt' ], $names( [ 'files' => [ $made['changed_files'][0]['path'] ] ] ), 'files of one mount only' );
		}
	);
};
