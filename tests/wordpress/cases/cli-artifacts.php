<?php
/**
 * `wp codebox artifacts …`: output and exit status.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$fresh = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
	};
	$run   = static function ( string $what = 'fix' ) use ( $t, $fresh ): string {
		$fresh();
		[ , $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php ' . getenv( 'TEST_FIXTURES' ) . "/agent.php $what", '--porcelain' ] );
		$t->same( 1, preg_match( '/^run_[0-9a-f]{32}$/', trim( $out ) ), $err );
		return trim( $out );
	};
	$path  = '/wordpress/wp-content/plugins/sample/';

	$t->test(
		'artifacts list prints only the requested format, fields and page, and refuses an unknown field',
		static function () use ( $t, $run ): void {
			$id = $run();
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'list', '--per-page=1', '--format=json', '--fields=run_id,outcome,changed_files' ] );
			$t->same( [ 0, [ [ 'run_id' => $id, 'outcome' => 'succeeded', 'changed_files' => 2 ] ] ], [ $code, json_decode( $out, true ) ] );
			$t->same( $id, $t->wp( [ 'codebox', 'artifacts', 'list', '--per-page=1', '--format=ids' ] )[1] );
			$t->same( "$id\n", $t->wp( [ 'codebox', 'artifacts', 'list', '--per-page=1', '--porcelain' ] )[1] );
			$t->same( '1', trim( $t->wp( [ 'codebox', 'artifacts', 'list', '--per-page=1', '--format=count' ] )[1] ) );
			$t->same( "run_id,outcome\n$id,succeeded\n", $t->wp( [ 'codebox', 'artifacts', 'list', '--per-page=1', '--format=csv', '--fields=run_id,outcome' ] )[1] );
			$t->contains( $id, $t->wp( [ 'codebox', 'artifacts', 'list' ] )[1] );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'list', '--fields=nope' ] );
			$t->same( [ 1, '' ], [ $code, $out ] );
			$t->contains( '(wp_codebox_input_invalid)', $err );
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'list', '--page=99999', '--format=json' ] );
			$t->same( [ 0, "[]" ], [ $code, trim( $out ) ] );
		}
	);
	$t->test(
		'artifacts get lists the changed files, and inspect exits with 1 for a bundle that does not verify',
		static function () use ( $t, $run, $path ): void {
			$id = $run();
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'get', substr( $id, 0, 12 ), '--format=csv' ] );
			$t->same( [ 0, "status,path,insertions,deletions\nmodified,{$path}inc/more.php,1,1\nmodified,{$path}sample.php,1,1\n" ], [ $code, $out ] );
			$got = json_decode( $t->wp( [ 'codebox', 'artifacts', 'get', $id, '--format=json' ] )[1], true );
			$t->same( [ 'wp-codebox/artifact/v1', $id ], [ $got['schema'], $got['artifact']['run_id'] ] );
			$t->same( $got['artifact']['artifact_id'] . "\n", $t->wp( [ 'codebox', 'artifacts', 'get', $id, '--porcelain' ] )[1] );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'inspect', $id ] );
			$t->same( 0, $code );
			$t->contains( 'The bundle verifies (signed by this host).', $err );
			$t->contains( "{$path}sample.php", $out );
			$t->same( hash_file( 'sha256', $got['artifact']['directory'] . '/manifest.json' ) . "\n", $t->wp( [ 'codebox', 'artifacts', 'inspect', $id, '--porcelain' ] )[1] );
			file_put_contents( $got['artifact']['directory'] . '/files/patch.diff', 'x' );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'inspect', $id, '--format=csv', '--fields=code' ] );
			$t->same( 1, $code );
			$t->contains( "file-hash-mismatch\n", $out );
			$t->contains( 'does not verify', $err );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'get', 'run_000000000000' ] );
			$t->same( [ 1, '' ], [ $code, $out ] );
			$t->contains( '(wp_codebox_artifact_not_found)', $err );
		}
	);
	$t->test(
		'artifacts diff prints the patch byte for byte, and git can apply it',
		static function () use ( $t, $run, $path ): void {
			$id             = $run( 'latin1' );
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'diff', $id ] );
			$bundle         = json_decode( $t->wp( [ 'codebox', 'artifacts', 'get', $id, '--format=json' ] )[1], true )['artifact']['directory'];
			$t->same( [ 0, (string) file_get_contents( $bundle . '/files/patch.diff' ) ], [ $code, $out ] );
			$id = $run();
			[ , $some ] = $t->wp( [ 'codebox', 'artifacts', 'diff', $id, '--files=sample.php' ] );
			[ , $full ] = $t->wp( [ 'codebox', 'artifacts', 'diff', $id, "--files={$path}sample.php" ] );
			$t->same( $full, $some );
			$t->contains( "+\treturn 'hello';", $some );
			$t->true( ! str_contains( $some, 'more.php' ), 'the patch contains a file that was not requested' );
			$copy = getenv( 'TEST_WORK' ) . '/copy-' . $id;
			wp_mkdir_p( $copy );
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', $copy . '/sample.php' );
			file_put_contents( $copy . '/p', $some );
			exec( 'cd ' . escapeshellarg( $copy ) . ' && GIT_CEILING_DIRECTORIES=.. git apply p 2>&1', $said, $status );
			$t->same( [ 0, [] ], [ $status, $said ] );
			$t->contains( "'hello'", (string) file_get_contents( $copy . '/sample.php' ) );
		}
	);
	$t->test(
		'artifacts preflight-apply writes nothing, and apply can apply the files in two steps',
		static function () use ( $t, $run, $path ): void {
			$id = $run();
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'preflight-apply', $id, '--approved-files=sample.php', '--format=csv', '--fields=path' ] );
			$t->same( [ 0, "path\n{$path}sample.php\n" ], [ $code, $out ], $err );
			$t->contains( 'The apply would hand over 1 of 2 changed files. Nothing was written.', $err );
			$t->contains( "'helo'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'apply', $id, '--approved-files=sample.php', '--approver=jo' ] );
			$t->same( [ 0, "path\n{$path}sample.php\n" ], [ $code, $out ], $err );
			$t->contains( 'example-host/git-apply: applied. Audit reference example-host-', $err );
			$t->contains( "'hello'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) );
			$t->contains( "'moore'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/inc/more.php' ) );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'apply', $id, '--all', '--format=json' ] );
			$t->same( [ 1, 'wp_codebox_apply_conflict' ], [ $code, json_decode( $out, true )['error']['code'] ] );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'apply', $id, "--approved-files=[\"{$path}inc/more.php\"]", '--format=json' ] );
			$done                 = json_decode( $out, true );
			$t->same( [ 0, 'wp-codebox/artifact-apply/v1', [ "{$path}inc/more.php" ] ], [ $code, $done['schema'] ?? '', $done['result']['applied_files'] ?? '' ], $err );
		}
	);
	$t->test(
		'artifacts apply refuses wrong flags, a user without capability and a site without adapter',
		static function () use ( $t, $run ): void {
			$id = $run();
			foreach ( [
				[ [], 1, 'wp_codebox_approved_files_missing' ],
				[ [ '--approved-files=other.php' ], 1, 'wp_codebox_approved_files_invalid' ],
				[ [ '--approved-files=sample.php', '--all' ], 1, 'wp_codebox_input_invalid' ],
				[ [ '--all', '--manifest-sha256=' . str_repeat( '0', 64 ) ], 1, 'wp_codebox_artifact_changed' ],
				[ [ '--all', '--user=editor' ], 126, 'wp_codebox_forbidden' ],
			] as [ $flags, $status, $expected ] ) {
				foreach ( [ 'apply', 'preflight-apply' ] as $verb ) {
					[ $code, $out, $err ] = $t->wp( array_merge( [ 'codebox', 'artifacts', $verb, $id ], $flags ) );
					$t->same( [ $status, '' ], [ $code, $out ], $err );
					$t->contains( "($expected)", $err );
				}
			}
			$t->contains( "'helo'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) );
			[ $code ] = $t->wp( [ 'plugin', 'deactivate', 'host-plugin' ] );
			$t->same( 0, $code );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'apply', $id, '--all' ] );
			$t->wp( [ 'plugin', 'activate', 'host-plugin' ] );
			$t->same( [ 1, '' ], [ $code, $out ] );
			$t->contains( '(wp_codebox_apply_adapter_missing)', $err );
			$t->same( 0, $t->wp( [ 'codebox', 'artifacts', 'apply', $id, '--all', '--user=admin' ] )[0], 'positive control' );
		}
	);
	$t->test(
		'artifacts discard deletes the bundle and refuses a user without capability',
		static function () use ( $t, $run ): void {
			$id = $run();
			$t->same( 126, $t->wp( [ 'codebox', 'artifacts', 'discard', $id, '--user=editor' ] )[0] );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'discard', $id, '--format=csv', '--fields=run_id,discarded' ] );
			$t->same( [ 0, "run_id,discarded\n$id,true\n" ], [ $code, $out ], $err );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'discard', $id, '--yes' ] );
			$t->same( [ 1, '' ], [ $code, $out ] );
			$t->contains( '(wp_codebox_artifact_not_found)', $err );
		}
	);

	$t->test(
		'no command prints a control or invisible character of a hostile run, in any of its formats, and only diff prints its bytes, and only into a pipe',
		static function () use ( $t, $fresh ): void {
			$fresh();
			// Clipboard, title, clear, 8-bit sequence, carriage return, backspace, direction marks, invisible letters.
			$text = "\x1b]52;c;eA==\x07\x1b]0;t\x07\x1b[2J\u{9b}31mgood\rbad\x08\u{202e}gnp.exe\u{2066}a\u{200b}b\u{2060}c\u{e0041}d\u{3164}e";
			$file = WP_PLUGIN_DIR . '/sample/hostile.json';
			file_put_contents( $file, json_encode( $text ) );
			// Bytes or characters that a terminal obeys or hides.
			$hidden = static fn( string $printed ): int => (int) preg_match( '/[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}\p{Zl}\p{Zp}\x{3164}]/u', $printed );
			$forged = static fn( string $printed ): int => (int) preg_match( '/^Error: forged/m', $printed );
			try {
				$goal = "$text\nError: forged (wp_codebox_forged)";
				$call = [ 'codebox', 'run-agent-task', $goal, '--plugin=sample', '--agent-command=php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php hostile' ];
				[ $code, $out, $err ] = $t->wp( $call );
				$t->same( [ 0, 0, 0, 0 ], [ $code, $hidden( $out ), $hidden( $err ), $forged( $out . $err ) ], $out . $err );
				$id = trim( $t->wp( [ 'codebox', 'runs', 'list', '--per-page=1', '--porcelain' ] )[1] );
				$t->contains( $id, $out );
				// Control: the patch in a pipe has the bytes of the guest; on a terminal it has none of them.
				$t->contains( "+$text\n", $t->wp( [ 'codebox', 'artifacts', 'diff', $id ] )[1] );
				[ $code, $printed ] = $t->wp( [ 'codebox', 'artifacts', 'diff', $id ], [ 'NO_COLOR' => '1' ], [ 'terminal' => true ] );
				$t->same( 0, $code, $printed );
				$printed = str_replace( "\r\n", "\n", $printed );
				$t->contains( '+]52;c;eA==]0;t[2J31mgoodbadgnp.exeabcde', $printed );
				$t->same( 0, $hidden( $printed ), $printed );
				// A row for each command that has --format: its arguments, which hold or select hostile text, and its formats if a
				// run of each format would take too long. What deletes the bundle comes last.
				$input  = static fn( array $fields ): string => '--input-json=' . json_encode( $fields, JSON_UNESCAPED_UNICODE );
				$task   = [
					'goal'          => $goal,
					'plugin'        => 'sample',
					'agent_command' => 'php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php hostile',
				];
				$odd    = $input( [ $text => $text ] );
				$runs   = [ 'table', 'json' ];
				$files  = "--approved-files=$text";
				$tables = [
					'runs list'                       => [ [] ],
					'runs get'                        => [ [ $id ] ],
					'runs events'                     => [ [ $id ] ],
					'runs cancel'                     => [ [ $text ] ],
					'artifacts list'                  => [ [] ],
					'artifacts get'                   => [ [ $id ] ],
					'artifacts inspect'               => [ [ $id ] ],
					'artifacts history'               => [ [ $id ] ],
					'artifacts preflight-apply'       => [ [ $id, '--all' ] ],
					'artifacts apply'                 => [ [ $id, $files ] ],
					'artifacts rollback'              => [ [ $text ] ],
					'artifacts review'                => [ [ $id, '--action=reject', "--reason=$goal", "--approver=$text" ] ],
					'artifacts stage-apply'           => [ [ $id, $files ] ],
					'artifacts export'                => [ [ $text ] ],
					'artifacts import'                => [ [ "/$text" ] ],
					'artifacts reimport'              => [ [ $text, "/$text" ] ],
					'artifacts download'              => [ [ $text ] ],
					'artifacts replay'                => [ [ $id ], $runs ],
					'audit list'                      => [ [] ],
					'audit verify'                    => [ [] ],
					'run-agent-task'                  => [ [ $input( $task ) ], $runs ],
					'run-agent-task-batch'            => [ [ $input( [ 'tasks' => [ $task ] ] ) ], $runs ],
					'run-agent-task-fanout'           => [ [ $input( [ 'goal' => $goal, 'workers' => [ [ 'id' => 'one' ] + $task ] ] ) ], $runs ],
					'run-runtime-task'                => [ [ $odd ] ],
					'run-runtime-package'             => [ [ $odd ] ],
					'run-wordpress-workload'          => [ [ $odd ] ],
					'run-fuzz-suite'                  => [ [ $odd ] ],
					'resolve-runtime-requirements'    => [ [ $odd ] ],
					'runtime descriptor'              => [ [] ],
					'wordpress-fuzz-runtime-contract' => [ [] ],
					'browser-session create'          => [ [ $odd ] ],
					'browser-assets install'          => [ [ "/$text" ] ],
					'browser-assets status'           => [ [] ],
					'commands'                        => [ [] ],
					'policy show'                     => [ [] ],
					'policy validate'                 => [ [ $odd ] ],
					'doctor'                          => [ [] ],
					'gc'                              => [ [ '--dry-run', '--max-age=1s' ] ],
					'artifacts discard'               => [ [ $id ] ],
				];
				$list    = '$walk = static function ( $command, $name ) use ( &$walk ) {
					$known = [ $name => $command->get_longdesc() ];
					foreach ( $command->get_subcommands() as $below => $one ) {
						$known += $walk( $one, ltrim( "$name $below" ) );
					}
					return $known;
				};
				$known = $walk( WP_CLI::get_root_command()->get_subcommands()["codebox"], "" );
				// Commands below a noun without a class of its own, which WP-CLI adds only when one of them is called.
				foreach ( WP_CLI::get_deferred_additions() as $name => $added ) {
					if ( str_starts_with( $name, "codebox " ) ) {
						$known[ substr( $name, 8 ) ] = ( new WP_CLI\DocParser( ( new ReflectionMethod( ...$added["callable"] ) )->getDocComment() ) )->get_longdesc();
					}
				}
				echo json_encode( $known );';
				$formats = [];
				foreach ( json_decode( $t->wp( [ 'eval', $list ] )[1], true ) as $name => $about ) {
					if ( 1 === preg_match( '/^\[--format=<format>\]$.*?^options:\n((?:\s*- \w+\n)+)/ms', $about, $found ) ) {
						$formats[ $name ] = preg_split( '/\s*- /', trim( $found[1] ), -1, PREG_SPLIT_NO_EMPTY );
					}
				}
				$t->same( [ [], [] ], [ array_values( array_diff( array_keys( $formats ), array_keys( $tables ) ) ), array_values( array_diff( array_keys( $tables ), array_keys( $formats ) ) ) ], 'commands without a row, and rows without a command' );
				foreach ( $tables as $name => $row ) {
					foreach ( $row[1] ?? $formats[ $name ] as $format ) {
						[ , $out, $err ] = $t->wp( array_merge( [ 'codebox' ], explode( ' ', $name ), $row[0], [ "--format=$format" ] ) );
						$t->same( [ 0, 0, 0 ], [ $hidden( $out ), $hidden( $err ), $forged( $out . $err ) ], "$name $format: $out$err" );
						$t->true( '' !== $out . $err, "$name $format printed nothing" );
					}
				}
			} finally {
				unlink( $file );
			}
		}
	);
};
