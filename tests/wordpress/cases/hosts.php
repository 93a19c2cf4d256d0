<?php
/**
 * The example host plugins, end to end: direct write, git branch, and several at once.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$target = '/wordpress/wp-content/plugins/sample';
	$plugin = WP_PLUGIN_DIR . '/sample';
	$text   = static fn( string $name = 'sample.php' ): string => (string) file_get_contents( $plugin . '/' . $name );
	$apply  = static fn( array $made, array $files = [] ): mixed => $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [] === $files ? array_column( $made['changed_files'], 'path' ) : $files ] );
	$place  = static function ( string $name ): string {
		$directory = getenv( 'TEST_WORK' ) . '/' . $name . '-' . bin2hex( random_bytes( 4 ) );
		wp_mkdir_p( $directory );
		return $directory;
	};
	$direct = static function ( callable $body ) use ( $t, $place ): void {
		$backups = $place( 'backups' );
		update_option( 'direct_write_backups', $backups );
		$t->hosts( [ 'host-direct-write' ], static fn(): mixed => $body( $backups ) );
		delete_option( 'direct_write_backups' );
	};
	// A repository whose directory `code` holds the plugin as it ships.
	$repository = static function () use ( $t, $place, $target ): string {
		$directory = $place( 'repository' );
		$t->made();
		exec( sprintf( 'cd %1$s && git init -q -b main . && mkdir code && cp -r %2$s/. code/ && rm -f code/agent.php && printf "#!/bin/sh\ntouch %1$s/hook-ran\n" >.git/hooks/pre-commit && cp .git/hooks/pre-commit .git/hooks/post-checkout && chmod +x .git/hooks/* && git add -A && git -c core.hooksPath=/dev/null -c user.name=t -c user.email=t@localhost commit -q -m base', escapeshellarg( $directory ), escapeshellarg( getenv( 'TEST_FIXTURES' ) . '/sample' ) ), $said, $code );
		$t->same( 0, $code, implode( "\n", $said ) );
		update_option( 'git_branch_repositories', [ $target => [ 'repository' => $directory, 'base' => 'main', 'prefix' => 'code' ] ] );
		return $directory;
	};
	$git = static fn( string $directory, string $command ): string => trim( (string) shell_exec( 'git -c safe.directory=* -C ' . escapeshellarg( $directory ) . ' ' . $command . ' 2>&1' ) );

	$t->test(
		'hosts: direct write replaces whole files and keeps a backup of the old ones',
		static function () use ( $t, $direct, $apply, $text, $plugin ): void {
			$direct(
				static function ( string $backups ) use ( $t, $apply, $text, $plugin ): void {
					$made   = $t->made();
					$before = $text();
					$names  = scandir( $plugin );
					chmod( $plugin . '/sample.php', 0640 );
					$done = $t->ok( $apply( $made ) );
					$t->same( [ true, 'example-host/direct-write', 'applied', array_column( $made['changed_files'], 'path' ) ], [ $done['success'], $done['result']['adapter'], $done['result']['status'], $done['result']['applied_files'] ] );
					$t->contains( "'hello'", $text() );
					$t->contains( "'more'", $text( 'inc/more.php' ) );
					$t->same( '0640', substr( sprintf( '%o', fileperms( $plugin . '/sample.php' ) ), -4 ) );
					$t->same( $before, (string) file_get_contents( $done['result']['target']['backup'] . '/0/sample.php' ) );
					$t->true( str_starts_with( $done['result']['target']['backup'], $backups ), 'the backup is elsewhere' );
					$t->same( $names, scandir( $plugin ) );
					chmod( $plugin . '/sample.php', 0644 );
				}
			);
		}
	);
	$t->test(
		'hosts: direct write adds and deletes files',
		static function () use ( $t, $direct, $apply, $plugin ): void {
			$direct(
				static function () use ( $t, $apply, $plugin ): void {
					file_put_contents( $plugin . '/old.txt', "old\n" );
					$made = $t->made( 'tree' );
					$t->same( [ 'added', 'deleted' ], array_values( array_unique( array_column( $made['changed_files'], 'status' ) ) ), (string) json_encode( $made['changed_files'] ) );
					$files = array_column( array_filter( $made['changed_files'], static fn( array $entry ): bool => 'file' === $entry['type'] ), 'path' );
					$t->ok( $apply( $made, $files ) );
					$t->same( [ "new\n", false, '0755' ], [ (string) file_get_contents( $plugin . '/deep/er/new.sh' ), file_exists( $plugin . '/old.txt' ), substr( sprintf( '%o', fileperms( $plugin . '/deep/er/new.sh' ) ), -4 ) ] );
					unlink( $plugin . '/deep/er/new.sh' );
					rmdir( $plugin . '/deep/er' );
					rmdir( $plugin . '/deep' );
				}
			);
		}
	);
	$t->test(
		'hosts: direct write refuses an altered payload before writing and restores files after a late refusal',
		static function () use ( $t, $direct, $apply, $text, $plugin, $target, $place ): void {
			$direct(
				static function ( string $backups ) use ( $t, $apply, $text, $plugin, $target, $place ): void {
					$made    = $t->made();
					$before  = [ $text(), $text( 'inc/more.php' ) ];
					$payload = $t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => array_column( $made['changed_files'], 'path' ) ] ) )['payload'];
					$host    = new WPCodeboxDirectWrite\Direct_Write( $backups );
					$altered = static function ( int $index, array $with ) use ( $payload ): array {
						$payload['changed_files'][ $index ] = $with + $payload['changed_files'][ $index ];
						return $payload;
					};
					foreach ( [
						$altered( 1, [ 'relativePath' => '../escape.php' ] ),
						$altered( 1, [ 'afterSha256' => str_repeat( '0', 64 ) ] ),
						$altered( 1, [ 'beforeSha256' => str_repeat( '0', 64 ) ] ),
						$altered( 1, [ 'type' => 'symlink' ] ),
						[ 'targets' => [] ] + $payload,
					] as $bad ) {
						$t->same( 'direct_write_refused', $host->apply( $bad )->get_error_code() );
						$t->same( $before, [ $text(), $text( 'inc/more.php' ) ] );
					}
					// A directory of the change is a link out of the target.
					$outside = $place( 'outside' );
					copy( $plugin . '/inc/more.php', $outside . '/more.php' );
					unlink( $plugin . '/inc/more.php' );
					rmdir( $plugin . '/inc' );
					symlink( $outside, $plugin . '/inc' );
					$refused = $host->apply( $payload );
					unlink( $plugin . '/inc' );
					mkdir( $plugin . '/inc' );
					copy( getenv( 'TEST_FIXTURES' ) . '/sample/inc/more.php', $plugin . '/inc/more.php' );
					$t->same( [ 'direct_write_refused', $before[1] ], [ $refused->get_error_code(), (string) file_get_contents( $outside . '/more.php' ) ] );
					// A later write is impossible, so the earlier writes are reverted.
					$late                                   = $payload;
					$late['changed_files'][2]               = [ 'status' => 'added', 'relativePath' => 'inc/more.php/below.php', 'path' => $target . '/inc/more.php/below.php' ] + $payload['changed_files'][0];
					unset( $late['changed_files'][2]['beforeSha256'] );
					$t->same( 'direct_write_refused', $host->apply( $late )->get_error_code() );
					$t->same( $before, [ $text(), $text( 'inc/more.php' ) ] );
					$t->same( 'direct_write_backups_missing', ( new WPCodeboxDirectWrite\Direct_Write( '' ) )->apply( $payload )->get_error_code() );
					$t->same( 'applied', $host->apply( $payload )['status'], 'positive control' );
				}
			);
		}
	);
	$t->test(
		'hosts: direct write restores all files when a write fails halfway',
		static function () use ( $t, $direct, $text, $plugin ): void {
			$direct(
				static function ( string $backups ) use ( $t, $text, $plugin ): void {
					$made    = $t->made();
					$before  = [ $text(), $text( 'inc/more.php' ) ];
					$payload = $t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => array_column( $made['changed_files'], 'path' ) ] ) )['payload'];
					$names   = scandir( $plugin );
					$host    = new WPCodeboxDirectWrite\Direct_Write( $backups );
					// The name of the new file is so long that its temporary sibling exceeds NAME_MAX (255 bytes).
					$entry                      = $payload['changed_files'][0];
					$entry['status']            = 'added';
					$entry['relativePath']      = str_repeat( 'n', 250 );
					$entry['path']              = dirname( $entry['path'] ) . '/n';
					$payload['changed_files'][] = array_diff_key( $entry, [ 'beforeSha256' => 1 ] );
					$member                     = $payload['artifact']['directory'] . '/files/mounts/0/' . $entry['relativePath'];
					copy( $payload['artifact']['directory'] . '/files/mounts/0/inc/more.php', $member );
					$log     = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
					$refused = $host->apply( $payload );
					ini_set( 'error_log', (string) $log );
					unlink( $member );
					$t->same( [ 'direct_write_refused', $before ], [ is_wp_error( $refused ) ? $refused->get_error_code() : 'applied', [ $text(), $text( 'inc/more.php' ) ] ] );
					$t->same( $names, scandir( $plugin ) );
				}
			);
		}
	);
	$t->test(
		'hosts: git branch commits the change on a new branch and leaves the checked-out branch alone',
		static function () use ( $t, $repository, $apply, $text, $git ): void {
			$directory = $repository();
			$base      = $git( $directory, 'rev-parse main' );
			$made      = $t->made();
			$done      = $t->hosts( [ 'host-git-branch' ], static fn(): array => $t->ok( $apply( $made ) ) );
			$branch    = $done['result']['branch'];
			$t->same( [ 'example-host/git-branch', 'committed' ], [ $done['result']['adapter'], $done['result']['status'] ] );
			$t->same( $done['result']['commit'], $git( $directory, 'rev-parse ' . escapeshellarg( $branch ) ) );
			$t->same( $base, $git( $directory, 'rev-parse ' . escapeshellarg( $branch . '^' ) ) );
			$t->same( [ 'code/inc/more.php', 'code/sample.php' ], explode( "\n", $git( $directory, 'diff --name-only main ' . escapeshellarg( $branch ) ) ) );
			$t->contains( "'hello'", $git( $directory, 'show ' . escapeshellarg( $branch . ':code/sample.php' ) ) );
			$t->contains( $made['run']['run_id'], $git( $directory, 'log -1 --format=%B ' . escapeshellarg( $branch ) ) );
			$t->same( [ 'main', $base, '' ], [ $git( $directory, 'rev-parse --abbrev-ref HEAD' ), $git( $directory, 'rev-parse main' ), $git( $directory, 'status --porcelain' ) ] );
			$t->same( 1, count( explode( "\n", $git( $directory, 'worktree list' ) ) ), 'a work tree was left' );
			$t->same( false, file_exists( $directory . '/hook-ran' ), 'a hook of the repository ran' );
			$t->contains( "'helo'", $text() );
			$line = $t->audited()[0];
			$t->same( [ $branch, $done['result']['commit'] ], [ $line['result']['branch'], $line['result']['commit'] ] );
			$again = $t->hosts( [ 'host-git-branch' ], static fn(): mixed => $apply( $made ) );
			$t->error( 'git_branch_refused', 409, $again );
		}
	);
	$t->test(
		'hosts: git branch leaves no branch when the patch does not apply',
		static function () use ( $t, $repository, $apply, $git ): void {
			$directory = $repository();
			$made      = $t->made();
			exec( 'cd ' . escapeshellarg( $directory ) . ' && echo "<?php" >code/sample.php && git add -A && git -c core.hooksPath=/dev/null -c user.name=t -c user.email=t@localhost commit -q -m other' );
			$t->error( 'git_branch_patch_refused', 409, $t->hosts( [ 'host-git-branch' ], static fn(): mixed => $apply( $made ) ) );
			$t->same( [ 'main', 1 ], [ $git( $directory, 'branch --format="%(refname:short)"' ), count( explode( "\n", $git( $directory, 'worktree list' ) ) ) ] );
			delete_option( 'git_branch_repositories' );
			$t->error( 'git_branch_repository_unknown', 422, $t->hosts( [ 'host-git-branch' ], static fn(): mixed => $apply( $made ) ) );
		}
	);
	$t->test(
		'hosts: with several adapters only the first one applies the change',
		static function () use ( $t, $repository, $apply, $text, $place, $git ): void {
			foreach ( [ [ 'host-direct-write', 'host-git-branch', 'host-plugin' ], [ 'host-git-branch', 'host-direct-write', 'host-plugin' ] ] as $order ) {
				$directory = $repository();
				$backups   = $place( 'backups' );
				update_option( 'direct_write_backups', $backups );
				$made = $t->made();
				$done = $t->hosts( $order, static fn(): array => $t->ok( $apply( $made ) ) );
				$one  = 'host-direct-write' === $order[0];
				$t->same( $one ? 'example-host/direct-write' : 'example-host/git-branch', $done['result']['adapter'] );
				$t->contains( $one ? "'hello'" : "'helo'", $text() );
				$t->same( $one ? 1 : 2, count( explode( "\n", $git( $directory, 'branch --format="%(refname:short)"' ) ) ) );
				$t->same( $one ? 1 : 0, count( glob( $backups . '/*' ) ) );
				$t->same( [ 'apply-approved', 'apply' ], array_column( $t->audited( 2 ), 'event' ) );
			}
			delete_option( 'direct_write_backups' );
			delete_option( 'git_branch_repositories' );
		}
	);
	$t->test(
		'hosts: an error of the first adapter is final, and the next adapter does not write',
		static function () use ( $t, $apply, $text, $place ): void {
			update_option( 'direct_write_backups', $place( 'backups' ) );
			$made = $t->made();
			$t->error( 'git_branch_repository_unknown', 422, $t->hosts( [ 'host-git-branch', 'host-direct-write' ], static fn(): mixed => $apply( $made ) ) );
			$t->contains( "'helo'", $text() );
			$t->ok( $t->hosts( [ 'host-direct-write' ], static fn(): mixed => $apply( $made ) ) );
			delete_option( 'direct_write_backups' );
		}
	);
};
