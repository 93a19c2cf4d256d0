<?php
/**
 * Stands in for abilities that are not there yet: runs by the journal on disk, detached by
 * WP-CLI in the background. Each is left alone as soon as the plugin offers it.
 */

declare(strict_types=1);

use WPCodebox\Native\Artifacts;

function standin_dir(): string {
	return getenv( 'TMPDIR' ) . '/stand-in';
}

function standin_site(): string {
	return ( new WPCodebox\Host\Site( new WPCodebox\Host\InstalledCode() ) )->id();
}

function standin_runs(): string {
	return ini_get( 'wp_codebox.state_dir' ) . '/sites/' . standin_site() . '/runs';
}

function standin_view( string $id ): ?array {
	$file = standin_runs() . "/$id/run.json";
	if ( ! preg_match( '/^run_[0-9a-f]{32}$/', $id ) || ! is_file( $file ) ) {
		return null;
	}
	$run  = json_decode( (string) file_get_contents( $file ), true );
	$meta = json_decode( (string) @file_get_contents( standin_dir() . "/$id.json" ), true ) ?: [];
	$last = substr_count( (string) @file_get_contents( standin_runs() . "/$id/events.jsonl" ), "\n" );
	return [
		'schema'     => 'wp-codebox/run/v1',
		'run_id'     => $id,
		'status'     => 'ended' === $run['status'] ? 'ended' : 'running',
		'mode'       => 'detached',
		'created_at' => $run['created_at'],
		'updated_at' => $run['updated_at'],
		'summary'    => $run['reason'] ?? null,
		'last_event' => $last,
		'provenance' => [ 'requester' => [ 'kind' => 'user', 'id' => $meta['user'] ?? 1 ] ],
	] + array_filter( [ 'goal' => $meta['goal'] ?? null, 'outcome' => $run['outcome'] ?? null, 'bundle_id' => $run['bundle_id'] ?? null ] );
}

function standin_missing(): WP_Error {
	return new WP_Error( 'wp_codebox_run_not_found', 'There is no such run.', [ 'status' => 404 ] );
}

function standin_start( array $input ): array|WP_Error {
	@mkdir( standin_dir() );
	$log   = tempnam( standin_dir(), 'log' );
	$flags = [];
	foreach ( [ 'state_dir', 'share_dir', 'runner', 'launcher', 'php_binary' ] as $name ) {
		array_push( $flags, '-d', "wp_codebox.$name=" . ini_get( "wp_codebox.$name" ) );
	}
	$so      = glob( dirname( (string) ini_get( 'wp_codebox.runner' ) ) . '/wp_codebox.so' )[0];
	$command = array_merge( [ 'setsid', PHP_BINARY, '-d', "extension=$so" ], $flags, [ ini_get( 'wp_codebox.share_dir' ) . '/wp-cli.phar', '--path=' . ABSPATH, '--user=' . get_current_user_id(), 'codebox', 'run-agent-task', '--input-json=' . wp_json_encode( $input ) ] );
	$process = proc_open( $command, [ [ 'file', '/dev/null', 'r' ], [ 'file', '/dev/null', 'w' ], [ 'file', $log, 'w' ] ], $pipes, '/', [ 'PATH' => '/usr/bin:/bin', 'HOME' => getenv( 'HOME' ), 'TMPDIR' => getenv( 'TMPDIR' ), 'WP_CLI_CONFIG_PATH' => '/dev/null' ] );
	$pid     = proc_get_status( $process )['pid'];
	for ( $i = 0; $i < 200; $i++ ) {
		usleep( 50000 );
		if ( preg_match( '/Run (run_[0-9a-f]{32}) started/', (string) file_get_contents( $log ), $found ) ) {
			file_put_contents( standin_dir() . "/$found[1].json", wp_json_encode( [ 'pid' => $pid, 'goal' => $input['goal'], 'user' => get_current_user_id() ] ) );
			$GLOBALS['standin_keep'][] = $process;
			return [ 'success' => true, 'schema' => 'wp-codebox/run-handle/v1', 'run_id' => $found[1], 'status' => 'running', 'created_at' => gmdate( 'c' ), 'cursor' => 0 ];
		}
		if ( ! proc_get_status( $process )['running'] ) {
			break;
		}
	}
	return new WP_Error( 'wp_codebox_internal', (string) file_get_contents( $log ), [ 'status' => 400, 'hints' => [ 'Look at the log.' ] ] );
}

add_action(
	'wp_abilities_api_init',
	static function (): void {
		if ( wp_has_ability( 'wp-codebox/list-runs' ) || ! class_exists( Artifacts::class, false ) ) {
			return;
		}
		$any = [ 'type' => 'object', 'default' => [], 'additionalProperties' => true ];
		$add = static function ( string $name, string $cap, array $notes, callable $do ) use ( $any ): void {
			if ( wp_has_ability( "wp-codebox/$name" ) ) {
				return;
			}
			wp_register_ability(
				"wp-codebox/$name",
				[
					'label'               => $name,
					'description'         => $name,
					'category'            => 'wp-codebox',
					'input_schema'        => $any,
					'output_schema'       => $any,
					'execute_callback'    => $do,
					'permission_callback' => static fn(): bool => current_user_can( $cap ),
					'meta'                => [ 'show_in_rest' => true, 'annotations' => $notes ],
				]
			);
		};
		$read  = [ 'readonly' => true, 'destructive' => false, 'idempotent' => true ];
		$write = [ 'readonly' => false, 'destructive' => false, 'idempotent' => true ];
		wp_unregister_ability( 'wp-codebox/run-agent-task' );
		$add(
			'run-agent-task',
			'wp_codebox_run',
			[ 'readonly' => false, 'destructive' => false, 'idempotent' => false ],
			static function ( array $input ): array|WP_Error {
				unset( $input['wait'] );
				return standin_start( $input );
			}
		);
		$add(
			'list-runs',
			'wp_codebox_run',
			$read,
			static function (): array {
				$runs = array_values( array_filter( array_map( static fn( string $dir ): ?array => standin_view( basename( $dir ) ), glob( standin_runs() . '/run_*' ) ?: [] ) ) );
				return [ 'success' => true, 'schema' => 'wp-codebox/run-list/v1', 'total' => count( $runs ), 'runs' => $runs ];
			}
		);
		$add( 'get-run', 'wp_codebox_run', $read, static fn( array $input ): array|WP_Error => ( $run = standin_view( $input['run_id'] ) ) ? [ 'success' => true, 'schema' => 'wp-codebox/run/v1', 'run' => $run ] : standin_missing() );
		$add(
			'list-run-events',
			'wp_codebox_run',
			$read,
			static function ( array $input ): array|WP_Error {
				$run = standin_view( $input['run_id'] );
				if ( null === $run ) {
					return standin_missing();
				}
				$after  = (int) ( $input['after'] ?? 0 );
				$limit  = (int) ( $input['limit'] ?? 200 );
				$lines  = file( standin_runs() . "/{$run['run_id']}/events.jsonl", FILE_IGNORE_NEW_LINES );
				$events = array_values( array_filter( array_map( static fn( string $line ): mixed => json_decode( $line, true ), array_slice( $lines, $after, $limit ) ) ) );
				return [ 'success' => true, 'schema' => 'wp-codebox/run-events/v1', 'run_id' => $run['run_id'], 'events' => $events, 'cursor' => $after + count( $events ), 'more' => count( $lines ) > $after + $limit, 'status' => $run['status'] ];
			}
		);
		$add(
			'cancel-run',
			'wp_codebox_run',
			$write,
			static function ( array $input ): array|WP_Error {
				$run = standin_view( $input['run_id'] );
				if ( null === $run ) {
					return standin_missing();
				}
				$meta = json_decode( (string) file_get_contents( standin_dir() . "/{$run['run_id']}.json" ), true );
				posix_kill( (int) $meta['pid'], SIGTERM );
				return [ 'success' => true, 'schema' => 'wp-codebox/run-cancellation/v1', 'run_id' => $run['run_id'], 'answer' => 'requested', 'status' => 'running' ];
			}
		);
		$add(
			'get-artifact-diff',
			'wp_codebox_review',
			$read,
			static function ( array $input ): array {
				$files = [];
				foreach ( $input['files'] as $path ) {
					$patch   = Artifacts::diff( standin_site(), $input['artifact_id'], [ $path ] );
					$files[] = [ 'path' => $path ] + ( preg_match( '//u', $patch ) ? [ 'patch' => $patch ] : [ 'patch_base64' => base64_encode( $patch ) ] );
				}
				return [ 'success' => true, 'files' => $files ];
			}
		);
		$add(
			'review-artifact',
			'wp_codebox_review',
			[ 'readonly' => false, 'destructive' => false, 'idempotent' => false ],
			static function ( array $input ): mixed {
				if ( 'approve' === $input['action'] ) {
					unset( $input['action'] );
					return wp_get_ability( 'wp-codebox/apply-approved-artifact' )->execute( $input );
				}
				return [ 'success' => true, 'schema' => 'wp-codebox/artifact-review-result/v1', 'action' => $input['action'] ];
			}
		);
		$add(
			'export-artifact-bundle',
			'wp_codebox_review',
			$read,
			static function ( array $input ): array {
				$bytes = (string) shell_exec( 'tar -cf - -C ' . escapeshellarg( Artifacts::get( standin_site(), $input['artifact_id'] )['directory'] ) . ' .' );
				return [ 'success' => true, 'run_id' => $input['artifact_id'], 'archive' => base64_encode( $bytes ), 'bytes' => strlen( $bytes ), 'sha256' => hash( 'sha256', $bytes ) ];
			}
		);
	},
	20
);
