<?php
/**
 * Runner workspaces: the backend of the site does the work, this plugin checks requests and answers.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Published;

require_once dirname( __DIR__ ) . '/published.php';

return static function ( Harness $t ): void {
	$inputs  = [
		'prepare' => [ 'schema' => 'wp-codebox/runner-workspace-prepare-request/v1', 'repo' => ' acme/shop ', 'target_repo' => 'acme/shop', 'repo_slug' => 'shop', 'clone_url' => 'https://example.org/acme/shop.git', 'branch' => 'fix-1', 'from' => 'main', 'runner_workspace' => [ 'a' => 1 ], 'runner_workspace_config' => [ 'b' => 1 ], 'github_token_env' => 'GITHUB_TOKEN', 'workload_id' => 'w1' ],
		'capture' => [ 'schema' => 'wp-codebox/runner-workspace-capture-request/v1', 'workspace' => 'shop@fix-1', 'from' => 'main', 'exclude_paths' => [ 'vendor' ], 'include_diff' => true ],
		'command' => [ 'schema' => 'wp-codebox/runner-workspace-command-request/v1', 'workspace' => 'shop@fix-1', 'command' => "composer test\n", 'description' => 'Tests', 'timeout_seconds' => 60, 'env' => [ 'CI' => '1' ], 'context' => [ 'x' => 1 ] ],
		'publish' => [ 'schema' => 'wp-codebox/runner-workspace-publication-request/v1', 'workspace' => 'shop@fix-1', 'repo' => 'acme/shop', 'base' => 'main', 'head' => 'fix-1', 'commit_message' => "Fix\n\nIt was broken.", 'title' => 'Fix it', 'body' => 'It was broken.', 'labels' => [ 'bug' ], 'draft' => true, 'paths' => [ 'a.php' ] ],
	];
	$answers = [
		'adopt'   => [ 'success' => true, 'name' => 'shop', 'path' => '/srv/shop' ],
		'clone'   => [ 'success' => true, 'name' => 'shop', 'path' => '/srv/shop' ],
		'show'    => [ 'success' => true, 'name' => 'shop', 'path' => '/srv/shop' ],
		'tree'    => [ 'success' => true, 'handle' => 'shop@fix-1', 'path' => '/srv/shop@fix-1', 'branch' => 'fix-1' ],
		'status'  => [ 'success' => true, 'dirty' => 2, 'files' => [ 'a.php', 'b.php' ] ],
		'diff'    => [ 'success' => true, 'diff' => "diff --git a/a.php b/a.php\n" ],
		'command' => [ 'success' => true, 'exit_code' => 0, 'stdout' => "ok\n", 'stderr' => '', 'elapsed_ms' => 12.5 ],
		'publish' => [ 'success' => true, 'status' => 'published', 'branch' => 'fix-1', 'commit' => [ 'sha' => 'abc' ], 'pull_request' => [ 'url' => 'https://example.org/1' ], 'reused' => false, 'opened' => true ],
	];
	$seen    = new ArrayObject();
	foreach ( array_keys( $answers ) as $name ) {
		$schema = 'tree' === $name ? [ 'type' => 'object', 'properties' => [ 'repo' => [ 'type' => 'string' ], 'branch' => [ 'type' => 'string' ], 'from' => [ 'type' => 'string' ] ], 'additionalProperties' => false ] : [ 'type' => 'object', 'default' => [] ];
		if ( ! wp_has_ability( "backend/$name" ) ) {
			WP_Abilities_Registry::get_instance()->register(
				"backend/$name",
				[
					'label'               => $name,
					'description'         => $name,
					'category'            => 'wp-codebox',
					'input_schema'        => $schema,
					'execute_callback'    => static function ( mixed $input = [] ) use ( $seen, $name ): mixed {
						$seen[ $name ] = $input;
						$answer        = $seen['answers'][ $name ];
						return $answer instanceof Closure ? $answer() : $answer;
					},
					'permission_callback' => static fn(): bool => current_user_can( 'manage_options' ),
				]
			);
		}
	}
	$config = [
		'schema'    => 'wp-codebox/runner-workspace-backend/v1',
		'id'        => 'backend',
		'abilities' => [ 'workspace_adopt' => 'backend/adopt', 'workspace_clone' => 'backend/clone', 'workspace_show' => 'backend/show', 'workspace_worktree_add' => 'backend/tree', 'workspace_git_status' => 'backend/status', 'workspace_git_diff' => 'backend/diff', 'run_runner_workspace_command' => 'backend/command', 'publish_runner_workspace' => 'backend/publish' ],
	];
	$with   = static function ( callable $body, array $changed = [], ?array $other = null ) use ( $t, $config, $answers, $seen ): mixed {
		$seen->exchangeArray( [ 'answers' => array_merge( $answers, $changed ) ] );
		return $t->filtered( 'wp_codebox_runner_workspace_backend', static fn(): array => $other ?? $config, $body, 1 );
	};
	$call   = static fn( string $action, array $more = [] ): mixed => $t->ability( "runner-workspace-$action", $more + $inputs[ $action ] );

	foreach ( array_keys( $inputs ) as $action ) {
		$t->test(
			"runner workspace: $action without a backend does nothing and says so",
			static function () use ( $t, $call, $inputs, $action ): void {
				$t->as( 'administrator' );
				$answer = Published::answers( $t, "runner-workspace-$action", $t->ability( "runner-workspace-$action", Published::takes( $t, "runner-workspace-$action", $inputs[ $action ] ) ) );
				$t->same( [ false, 'backend_unavailable', 'wp_codebox_runner_workspace_backend_unavailable' ], [ $answer['success'], $answer['failure_type'], $answer['error']['code'] ] );
				$t->same( [ 'prepare' => 'unavailable', 'capture' => [ 'state' => 'unavailable' ], 'command' => 'unavailable', 'publish' => 'failed' ][ $action ], $answer['status'] );
				$t->as( 'editor' );
				$t->same( 'ability_invalid_permissions', $call( $action )->get_error_code() );
			}
		);
	}
	$t->test(
		'runner workspace: the backend prepares, captures, runs a command and publishes',
		static function () use ( $t, $with, $call, $seen ): void {
			$t->as( 'administrator' );
			$with(
				static function () use ( $t, $call, $seen ): void {
					$made = Published::answers( $t, 'runner-workspace-prepare', $call( 'prepare' ) );
					$t->same( [ true, 'prepared', 'shop@fix-1', '/srv/shop@fix-1', 'fix-1', 'acme/shop', [ 'capture' => true, 'command' => true, 'publish' => true ] ], [ $made['success'], $made['status'], $made['handle'], $made['path'], $made['branch'], $made['repo'], $made['capabilities'] ] );
					$t->same( [ 'https://example.org/acme/shop.git', 'shop' ], [ $seen['clone']['url'], $seen['clone']['name'] ] );
					$tree = $seen['tree'];
					ksort( $tree );
					$t->same( [ 'branch' => 'fix-1', 'from' => 'main', 'repo' => 'acme/shop' ], $tree, 'an ability with a closed schema gets only its own fields' );
					$captured = Published::answers( $t, 'runner-workspace-capture', $call( 'capture' ) );
					$t->same( [ true, true, [ 'a.php', 'b.php' ], "diff --git a/a.php b/a.php\n", 'shop@fix-1' ], [ $captured['success'], $captured['changed'], $captured['status']['files'], $captured['diff']['diff'], $captured['workspace']['handle'] ] );
					$t->true( ! isset( $call( 'capture', [ 'include_diff' => false ] )['diff'] ), 'a difference that was not asked for' );
					$ran = Published::answers( $t, 'runner-workspace-command', $call( 'command' ) );
					$t->same( [ true, 'completed', 'composer test', 0, "ok\n", 12.5 ], [ $ran['success'], $ran['status'], $ran['command'], $ran['exit_code'], $ran['stdout'], $ran['elapsed_ms'] ] );
					$t->same( [ 60, [ 'CI' => '1' ] ], [ $seen['command']['timeout_seconds'], $seen['command']['env'] ] );
					$line = $t->audited()[0];
					$t->same( [ 'runner-workspace', 'command', 'success', 'backend', 'composer test' ], [ $line['event'], $line['action'], $line['status'], $line['backend'], $line['command'] ] );
					$done = Published::answers( $t, 'runner-workspace-publish', $call( 'publish' ) );
					$t->same( [ true, 'published', [ 'name' => 'fix-1' ], [ 'sha' => 'abc' ], [ 'url' => 'https://example.org/1' ], false, true ], [ $done['success'], $done['status'], $done['branch'], $done['commit'], $done['pull_request'], $done['reused'], $done['opened'] ] );
				}
			);
		}
	);
	$t->test(
		'runner workspace: failures and malformed answers of the backend have a type and a code',
		static function () use ( $t, $with, $call ): void {
			$t->as( 'administrator' );
			foreach ( [
				[ 'command', [ 'command' => [ 'exit_code' => 2, 'stdout' => '', 'stderr' => 'token=ghp_0123456789abcdefghijklmnopqrstuvwxyz' ] ], 'backend_failed', null ],
				[ 'command', [ 'command' => [ 'success' => true ] ], 'backend_invalid_response', 'wp_codebox_runner_workspace_backend_invalid_response' ],
				[ 'command', [ 'command' => 'text' ], 'backend_invalid_response', 'wp_codebox_runner_workspace_backend_invalid_response' ],
				[ 'command', [ 'command' => new WP_Error( 'worktree_locked', 'Locked' ) ], 'backend_failed', 'worktree_locked' ],
				[ 'capture', [ 'status' => [ 'success' => false, 'error' => [ 'code' => 'no_tree', 'message' => 'No work tree' ] ] ], 'backend_failed', 'no_tree' ],
				[ 'publish', [ 'publish' => [ 'success' => true, 'status' => 'queued' ] ], 'backend_invalid_response', 'wp_codebox_runner_workspace_backend_invalid_response' ],
				[ 'prepare', [ 'clone' => [ 'success' => true ], 'tree' => [ 'success' => true ] ], 'backend_invalid_response', 'wp_codebox_runner_workspace_backend_invalid_response' ],
			] as [ $action, $changed, $type, $code ] ) {
				$answer = Published::answers( $t, "runner-workspace-$action", $with( static fn(): mixed => $call( $action ), $changed ) );
				$t->same( [ false, $type, $code ], [ $answer['success'], $answer['failure_type'], $answer['error']['code'] ?? null ], $action );
				$t->true( 'native' !== $t->phase || ! str_contains( (string) wp_json_encode( $answer ), 'ghp_0123' ), 'a token is in the answer' );
			}
			$log    = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$broken = $t->ok( $with( static fn(): mixed => $call( 'command' ), [ 'command' => static fn() => throw new RuntimeException( 'hunter2' ) ] ) );
			$t->same( [ 'backend_error', 'wp_codebox_runner_workspace_backend_error' ], [ $broken['failure_type'], $broken['error']['code'] ] );
			$thrown = $t->filtered( 'wp_codebox_runner_workspace_backend', static fn() => throw new RuntimeException( 'hunter2' ), static fn(): mixed => $call( 'command' ), 1 );
			ini_set( 'error_log', (string) $log );
			$t->same( 'backend_unavailable', $thrown['failure_type'] );
			$t->true( ! str_contains( (string) wp_json_encode( [ $thrown, $broken ] ), 'hunter2' ), 'the text of an exception is in the answer' );
		}
	);
	$t->test(
		'runner workspace: any fault in the configuration of the backend disables every operation',
		static function () use ( $t, $with, $call, $config, $seen ): void {
			$t->as( 'administrator' );
			foreach ( [
				[ 'id' => 'Not A Slug' ] + $config,
				[ 'schema' => 'other/v1' ] + $config,
				[ 'secret' => 'x' ] + $config,
				[ 'abilities' => [ 'run_runner_workspace_command' => 'wp-codebox/runner-workspace-command' ] ] + $config,
				[ 'abilities' => [ 'unknown_operation' => 'backend/command' ] + $config['abilities'] ] + $config,
				[ 'abilities' => [ 'run_runner_workspace_command' => 'backend/missing' ] ] + $config,
				[ 'abilities' => [] ] + $config,
			] as $wrong ) {
				$answer = $t->ok( $with( static fn(): mixed => $call( 'command' ), [], $wrong ) );
				$t->same( [ false, 'backend_unavailable' ], [ $answer['success'], $answer['failure_type'] ], (string) wp_json_encode( $wrong ) );
				$t->true( ! isset( $seen['command'] ), 'the backend was called' );
			}
			$t->same( true, $with( static fn(): mixed => $call( 'command' ) )['success'], 'positive control' );
		}
	);
	$t->test(
		'runner workspace: hostile values are refused before the backend is called',
		static function () use ( $t, $with, $call, $seen ): void {
			$t->as( 'administrator' );
			foreach ( [
				[ 'prepare', 'repo', '--upload-pack=touch /tmp/x' ],
				[ 'prepare', 'repo', "acme/shop\nmain" ],
				[ 'prepare', 'clone_url', 'file:///etc' ],
				[ 'prepare', 'clone_url', 'ext::sh -c id' ],
				[ 'prepare', 'clone_url', 'https://user:token@example.org/acme/shop.git' ],
				[ 'prepare', 'branch', '-d' ],
				[ 'prepare', 'branch', 'a..b' ],
				[ 'prepare', 'github_token_env', 'ghp_0123456789abcdefghij' ],
				[ 'prepare', 'checkout_path', '/srv/../etc' ],
				[ 'capture', 'workspace', '../../etc' ],
				[ 'capture', 'workspace', '--help' ],
				[ 'capture', 'handle', 'other@tree' ],
				[ 'capture', 'exclude_paths', [ '../x' ] ],
				[ 'capture', 'path', '/etc/passwd' ],
				[ 'command', 'command', "a\0b" ],
				[ 'command', 'command', '' ],
				[ 'command', 'env', [ 'LD_PRELOAD' => '/tmp/x.so' ] ],
				[ 'command', 'env', [ 'A B' => 'x' ] ],
				[ 'publish', 'base', 'main:refs/heads/x' ],
				[ 'publish', 'paths', [ '/etc/passwd' ] ],
			] as [ $action, $field, $value ] ) {
				$answer = Published::answers( $t, "runner-workspace-$action", $with( static fn(): mixed => $call( $action, [ $field => $value ] ) ) );
				$t->same( [ false, 'invalid_request' ], [ $answer['success'], $answer['failure_type'] ], $field . ' ' . wp_json_encode( $value ) );
				$t->true( str_starts_with( $answer['error']['code'], 'wp_codebox_runner_workspace_' ) && str_ends_with( $answer['error']['code'], '_invalid_request' ), $answer['error']['code'] );
				$t->same( [ 'answers' ], array_keys( $seen->getArrayCopy() ), 'the backend was called' );
			}
			$t->same( 'ability_invalid_input', $call( 'command', [ 'timeout_seconds' => 601 ] )->get_error_code() );
			$t->same( 'ability_invalid_input', $call( 'prepare', [ 'shell' => 'x' ] )->get_error_code() );
		}
	);
	$t->test(
		'runner workspace: without clone_url the backend looks the repository up; a backend without that operation asks for clone_url',
		static function () use ( $t, $with, $inputs, $config, $seen ): void {
			$t->as( 'administrator' );
			$input = array_diff_key( $inputs['prepare'], [ 'clone_url' => 1 ] );
			$with( static fn(): array => $t->ok( $t->ability( 'runner-workspace-prepare', $input ) ) );
			$t->same( 'shop', $seen['show']['name'] );
			$adopted = $with( static fn(): array => $t->ok( $t->ability( 'runner-workspace-prepare', [ 'checkout_path' => '/srv/checkout', 'branch' => '' ] + $input ) ) );
			$t->same( [ '/srv/checkout', 'shop' ], [ $seen['adopt']['path'], $adopted['handle'] ] );
			$other   = [ 'abilities' => array_diff_key( $config['abilities'], [ 'workspace_show' => 1 ] ) ] + $config;
			$refused = $with( static fn(): array => $t->ok( $t->ability( 'runner-workspace-prepare', $input ) ), [], $other );
			$t->same( [ 'clone_url_required', 'wp_codebox_runner_workspace_prepare_clone_url_required' ], [ $refused['failure_type'], $refused['error']['code'] ] );
		}
	);
	$t->test(
		'runner workspace: publishing needs the apply capability, the other actions the run capability, and the backend checks its own',
		static function () use ( $t, $with, $call, $seen ): void {
			$as = static fn( string $capability, string $action ): mixed => $t->filtered(
				'map_meta_cap',
				static fn( array $caps, string $cap ): array => $cap === $capability ? [ 'edit_posts' ] : $caps,
				static function () use ( $t, $with, $call, $action ): mixed {
					$t->as( 'editor' );
					return $with( static fn(): mixed => $call( $action ) );
				}
			);
			$t->same( 'ability_invalid_permissions', $as( 'wp_codebox_run', 'publish' )->get_error_code() );
			$refused = $t->ok( $as( 'wp_codebox_apply', 'publish' ) );
			$t->same( [ false, 'ability_invalid_permissions' ], [ $refused['success'], $refused['error']['code'] ], 'the ability of the backend refuses an editor' );
			$t->true( ! isset( $seen['publish'] ), 'the backend was called' );
			$t->same( false, $t->ok( $as( 'wp_codebox_run', 'command' ) )['success'] );
			$t->as( 'administrator' );
			$t->same( true, $with( static fn(): mixed => $call( 'publish' ) )['success'], 'positive control' );
		}
	);
};
