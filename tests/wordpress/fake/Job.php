<?php
/**
 * A run of the stand-in extension in its own process: the agent works on a copy of
 * the mounted directory.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Job {

	private array $request;
	private string $id;
	private int $seq = 0;

	public function __construct( private readonly string $directory ) {
		$this->id      = basename( $directory );
		$this->request = json_decode( (string) file_get_contents( $directory . '/request.json' ), true );
	}

	public function run(): void {
		$started = hrtime( true );
		$work    = sys_get_temp_dir() . '/codebox-fake-' . $this->id;
		mkdir( $work, 0700 );
		$this->emit( 'runtime.created' );
		foreach ( $this->request['mounts'] as $index => $mount ) {
			self::copy( $mount['source'], $work . '/a' . $index );
			self::copy( $mount['source'], $work . '/b' . $index );
			$this->emit( 'runtime.mounted', [ 'index' => $index, 'target' => $mount['target'], 'mode' => $mount['mode'] ?? 'readwrite', 'view' => 'overlay' ] );
		}
		[ $exit, $why ]        = match ( true ) {
			isset( $this->request['hold'] ) => $this->held(),
			isset( $this->request['agent']['argv'] ) => $this->execute( $this->request['agent']['argv'], $work . '/b0', 'agent', 'exec-1' ),
			'ability' === ( $this->request['agent']['kind'] ?? '' ) => [ 0, '' ],
			default => $this->loop( $work . '/b0' ),
		};
		[ $entries, $patches ] = $this->changes( $work );
		$members               = [];
		foreach ( $entries as $entry ) {
			$after = $work . '/b' . $entry['mountIndex'] . '/' . $entry['relativePath'];
			if ( is_file( $after ) ) {
				$members[ 'files/mounts/' . $entry['mountIndex'] . '/' . $entry['relativePath'] ] = (string) file_get_contents( $after );
			}
		}
		$checks = [];
		foreach ( '' === $why ? $this->request['checks'] ?? [] : [] as $number => $check ) {
			[ $code ] = $this->execute( Run::splitCommand( $check ), $work . '/b0', 'check', 'exec-' . ( $number + 2 ) );
			$checks[] = [ 'command' => $check, 'exit_code' => $code, 'status' => 0 === $code ? 'passed' : 'failed', 'output_tail' => 'tail of the check', 'duration_ms' => 5 ];
		}
		$good    = in_array( $exit, $this->request['agent']['success_codes'] ?? [ 0 ], true );
		$green   = [] === array_filter( $checks, static fn( array $check ): bool => 'passed' !== $check['status'] );
		$outcome = '' !== $why ? $why : ( ! $good ? 'failed' : ( [] === $entries ? 'no_op' : ( $green ? 'succeeded' : 'partial' ) ) );
		Bundles::remove( $work );
		$result = $this->result( $outcome, $entries, $patches, $checks, $members + $this->members( $outcome, $checks ), $exit, (int) ( ( hrtime( true ) - $started ) / 1e6 ) );
		$this->emit( 'runtime.destroyed', [ 'reason' => $outcome ] );
		file_put_contents( $this->directory . '/result.tmp', json_encode( $result, JSON_INVALID_UTF8_SUBSTITUTE ) );
		rename( $this->directory . '/result.tmp', $this->directory . '/result.json' );
	}

	/** Whether the caller has cancelled the run, or has ended without detaching the run. */
	private function cancelled(): bool {
		clearstatcache();
		if ( is_file( $this->directory . '/cancel' ) ) {
			return true;
		}
		$read  = [ STDIN ];
		$write = null;
		return ! is_file( $this->directory . '/detached' ) && stream_select( $read, $write, $write, 0 ) > 0 && '' === (string) fread( STDIN, 1 );
	}

	private function emit( string $type, array $data = [], string $execution = '' ): void {
		++$this->seq;
		$event = [ 'id' => 'evt-' . $this->seq, 'seq' => $this->seq, 'type' => $type, 'timestamp' => gmdate( 'Y-m-d\TH:i:s.000\Z' ) ];
		$event += ( '' === $execution ? [] : [ 'executionId' => $execution ] ) + ( [] === $data ? [] : [ 'data' => $data ] );
		file_put_contents( $this->directory . '/events.jsonl', json_encode( $event, JSON_INVALID_UTF8_SUBSTITUTE ) . "\n", FILE_APPEND );
	}

	private function members( string $outcome, array $checks ): array {
		$request = $this->request;
		$spec    = array_filter( [ 'limits' => $request['limits'] ?? null, 'checks' => $request['checks'] ?? null, 'commands' => $request['commands'] ?? null ] );
		return array_map(
			static fn( array $document ): string => (string) json_encode( $document, JSON_UNESCAPED_SLASHES ),
			[
				'metadata.json'           => array_filter(
					[
						'outcome'    => $outcome,
						'provenance' => $request['provenance'],
						'task'       => $request['task_input'],
						'policy'     => $request['policy'] ?? null,
						'spec'       => $spec + ( isset( $request['agent']['argv'] ) ? [ 'agent' => [ 'argv' => $request['agent']['argv'], 'successCodes' => $request['agent']['success_codes'] ] ] : [] ),
					]
				),
				'files/test-results.json' => [ 'schema' => 'wp-codebox/test-results/v1', 'status' => 'unknown', 'suites' => array_map( static fn( array $check ): array => [ 'name' => $check['command'], 'status' => $check['status'], 'exitCode' => $check['exit_code'] ], $checks ) ],
			]
		) + [
			'files/mounts.jsonl' => implode( '', array_map( static fn( array $mount, int $index ): string => json_encode( [ 'index' => $index, 'target' => $mount['target'], 'mode' => $mount['mode'] ?? 'readwrite', 'excluded' => [ '.git' ], 'metadata' => $mount['metadata'] ?? null ], JSON_UNESCAPED_SLASHES ) . "\n", $request['mounts'], array_keys( $request['mounts'] ) ) ),
		];
	}

	private function result( string $outcome, array $entries, array $patches, array $checks, array $members, int $exit, int $wall ): array {
		$table      = [
			'cancelled' => [ 'failed', false, 130, 'failed', 'review' ],
			'succeeded' => [ 'completed', true, 0, 'succeeded', 'promote' ],
			'no_op'     => [ 'completed', true, 0, 'partial', 'review' ],
			'partial'   => [ 'completed', false, 3, 'partial', 'review' ],
			'failed'    => [ 'failed', false, 1, [] === $entries ? 'failed' : 'partial', [] === $entries ? 'retry' : 'review' ],
			'timed_out' => [ 'failed', false, 124, [] === $entries ? 'failed' : 'partial', [] === $entries ? 'retry' : 'review' ],
		][ $outcome ];
		$summary    = sprintf( 'The run ended %s.', $outcome );
		$detail     = [ 'code' => [ 'succeeded' => 'agent_succeeded', 'no_op' => 'no_change' ][ $outcome ] ?? $outcome ];
		$baseline   = 'changed' === getenv( 'WP_CODEBOX_FAKE_BASELINE' ) ? 'changed' : 'same';
		$counts     = [ 'count' => count( $entries ), 'paths' => array_column( $entries, 'path' ), 'artifact' => 'files/changed-files.json' ];
		$completion = [ 'schema' => 'wp-codebox/sandbox-completion-outcome/v1', 'status' => $table[3], 'summary' => $summary, 'changedFiles' => $counts, 'nextAction' => $table[4], 'provenance' => [ 'artifactDirectory' => '.' ] ];
		$agent      = [ 'schema' => 'wp-codebox/agent-result/v1', 'status' => in_array( $outcome, [ 'failed', 'timed_out', 'cancelled' ], true ) ? 'failed' : 'completed', 'actionable' => 'succeeded' === $outcome, 'summary' => $summary, 'changedFiles' => $counts ];
		if ( [] === $entries ) {
			$agent['noOpReason'] = 'no_op' === $outcome ? 'no_file_changes' : 'execution_failed';
		}
		$result = [
			'schema'             => 'wp-codebox/run-result/v1',
			'run_id'             => $this->id,
			'outcome'            => $outcome,
			'summary'            => $summary,
			'summary_detail'     => $detail,
			'artifacts'          => Bundles::write( $this->request['site'], $this->id, $entries, $patches, [ 'outcome' => $outcome, 'summary' => $summary, 'summaryDetail' => $detail, 'baseline' => $baseline ], $members ),
			'changed_files'      => $entries,
			'approvable'         => 'same' === $baseline,
			'checks'             => $checks,
			'isolation'          => [
				'schema'      => 'wp-codebox/isolation-report/v1',
				'level'       => 'full',
				'kernel'      => '6.0',
				'landlockAbi' => 7,
				'axes'        => [
					[ 'axis' => 'network', 'requested' => 'enforced', 'enforced' => 'enforced', 'by' => 'an empty network namespace', 'evidence' => 'only lo' ],
					[ 'axis' => 'memory', 'requested' => 'enforced', 'enforced' => 'best-effort', 'by' => 'polling', 'evidence' => 'polled' ],
				],
			],
			'cost'               => [ 'wall_ms' => $wall, 'cpu_ms' => 20, 'peak_memory_bytes' => 31457280 ] + ( 'model' === ( $this->request['agent']['kind'] ?? '' ) ? [ 'model' => [ 'turns' => 12, 'input_tokens' => 34000, 'cached_input_tokens' => 0, 'output_tokens' => 2100, 'cost_microusd' => 30000 ] ] : [] ),
			'completion_outcome' => $completion,
			'agent_result'       => $agent,
			'transcript'         => [ 'schema' => 'wp-codebox/agent-transcript/v1', 'executions' => $this->executions() ],
			'session_status'     => $table[0],
			'success'            => $table[1],
			'exit_status'        => $table[2],
		];
		if ( 'failed' === $outcome ) {
			$result['error'] = [ 'code' => 'wp_codebox_run_failed', 'message' => sprintf( 'The agent exited with %d.', $exit ) ];
		} elseif ( 'timed_out' === $outcome ) {
			$result['error'] = [ 'code' => 'wp_codebox_run_timeout', 'message' => 'The run took too long.' ];
		} elseif ( 'cancelled' === $outcome ) {
			$result['error'] = [ 'code' => 'wp_codebox_run_cancelled', 'message' => 'The run was cancelled.' ];
		}
		return $result;
	}

	private function execute( array $argv, string $cwd, string $phase, string $id ): array {
		$staged = array_column( $this->request['staged_files'] ?? [], 'source', 'target' );
		$argv   = array_map( static fn( string $token ): string => $staged[ $token ] ?? $token, $argv );
		$limit  = ( $this->request['limits']['wall_clock_ms'] ?? 60000 ) / 1000;
		$this->emit( 'runtime.command.started', [ 'command' => 'agent' === $phase ? 'command-agent-run' : 'check', 'args' => $argv, 'phase' => $phase ], $id );
		$process = proc_open( $argv, [ [ 'file', '/dev/null', 'r' ], [ 'pipe', 'w' ], [ 'pipe', 'w' ] ], $pipes, $cwd );
		stream_set_blocking( $pipes[1], false );
		stream_set_blocking( $pipes[2], false );
		$until = microtime( true ) + $limit;
		$why   = '';
		do {
			$state = proc_get_status( $process );
			if ( microtime( true ) > $until ) {
				$why = 'timed_out';
			} elseif ( $this->cancelled() ) {
				$why = 'cancelled';
			}
			if ( '' !== $why ) {
				proc_terminate( $process, 9 );
			}
			foreach ( [ 1 => 'stdout', 2 => 'stderr' ] as $pipe => $stream ) {
				$text = (string) stream_get_contents( $pipes[ $pipe ] );
				if ( '' !== $text ) {
					$this->emit( 'runtime.command.output', [ 'stream' => $stream, 'text' => $text ], $id );
				}
			}
			usleep( 5000 );
		} while ( $state['running'] && '' === $why );
		$this->emit( 'runtime.command.finished', [ 'exitCode' => $state['exitcode'], 'durationMs' => 7 ], $id );
		proc_close( $process );
		return [ $state['exitcode'], $why ];
	}

	/** What the ability of a component returned: its input. */
	private function executions(): array {
		if ( 'ability' !== ( $this->request['agent']['kind'] ?? '' ) ) {
			return [];
		}
		$result = [ 'success' => true, 'outputs' => [ 'given' => $this->request['agent']['input'] ?? [] ], 'artifacts' => [ [ 'name' => 'report', 'content' => 'x' ] ] ];
		return [ [ 'executionIndex' => 0, 'command' => 'command-agent-run', 'args' => [ 'ability=' . $this->request['agent']['ability'] ], 'phase' => 'agent', 'stdout' => '', 'stderr' => '', 'exitCode' => 0, 'parsed' => [ 'status' => 'completed', 'result' => $result ] ] ];
	}

	/** A held sandbox: waits until a client closes it. */
	private function held(): array {
		while ( ! is_file( $this->directory . '/close' ) ) {
			if ( $this->cancelled() ) {
				return [ 0, 'cancelled' ];
			}
			usleep( 5000 );
			clearstatcache();
		}
		return [ 0, '' ];
	}

	/** The built-in agent of the stand-in: fixes the sample and sends the parent tool calls listed in the context. */
	private function loop( string $cwd ): array {
		file_put_contents( $cwd . '/sample.php', str_replace( 'helo', 'hello', (string) file_get_contents( $cwd . '/sample.php' ) ) );
		foreach ( $this->request['task_input']['context']['ask'] ?? [] as $number => $call ) {
			file_put_contents( $this->directory . "/ask-$number.tmp", json_encode( [ 'schema' => 'wp-codebox/parent-tool-request/v1', 'version' => 1, 'request_id' => $this->id . '-parent-' . $number, 'operation' => 'call' ] + $call ) );
			rename( $this->directory . "/ask-$number.tmp", $this->directory . "/ask-$number.json" );
			$until = microtime( true ) + 60;
			while ( ! is_file( $this->directory . "/reply-$number.json" ) && microtime( true ) < $until ) {
				usleep( 5000 );
				clearstatcache();
			}
		}
		return [ 0, '' ];
	}

	private function changes( string $work ): array {
		$entries = [];
		$patches = [];
		foreach ( $this->request['mounts'] as $index => $mount ) {
			$patches[ $index ] = [];
			$a                 = self::files( $work . '/a' . $index );
			$b                 = self::files( $work . '/b' . $index );
			$paths             = array_unique( array_merge( array_keys( $a ), array_keys( $b ) ) );
			sort( $paths );
			foreach ( $paths as $path ) {
				$was = isset( $a[ $path ] ) ? hash_file( 'sha256', $a[ $path ] ) : null;
				$is  = isset( $b[ $path ] ) ? hash_file( 'sha256', $b[ $path ] ) : null;
				if ( $was === $is ) {
					continue;
				}
				$diff = (string) shell_exec( sprintf( 'cd %s && git diff --no-index --no-color --src-prefix=a/ --dst-prefix=b/ -- %s %s', escapeshellarg( $work ), escapeshellarg( null === $was ? '/dev/null' : 'a' . $index . '/' . $path ), escapeshellarg( null === $is ? '/dev/null' : 'b' . $index . '/' . $path ) ) );
				$diff = str_replace( [ 'a/a' . $index . '/', 'b/b' . $index . '/', 'a/b' . $index . '/', 'b/a' . $index . '/' ], [ 'a/', 'b/', 'a/', 'b/' ], $diff );

				$patches[ $index ][ $path ] = $diff;
				$entries[]                  = array_filter(
					[
						'path'         => $mount['target'] . '/' . $path,
						'relativePath' => $path,
						'status'       => null === $was ? 'added' : ( null === $is ? 'deleted' : 'modified' ),
						'type'         => 'file',
						'beforeSha256' => $was,
						'beforeMode'   => null === $was ? null : ( is_executable( $a[ $path ] ) ? '100755' : '100644' ),
						'afterMode'    => null === $is ? null : ( is_executable( $b[ $path ] ) ? '100755' : '100644' ),
						'afterSha256'  => $is,
						'insertions'   => preg_match_all( '/^\+(?!\+\+ )/m', $diff ),
						'deletions'    => preg_match_all( '/^-(?!-- )/m', $diff ),
						'mountIndex'   => $index,
						'mountTarget'  => $mount['target'],
						'patchName'    => $path,
						'patchPath'    => 'files/diffs/mount-' . $index . '.patch',
					],
					static fn( mixed $value ): bool => null !== $value
				);
			}
		}
		return [ $entries, $patches ];
	}

	private static function files( string $root ): array {
		$files = [];
		foreach ( new \RecursiveIteratorIterator( new \RecursiveDirectoryIterator( $root, \FilesystemIterator::SKIP_DOTS ) ) as $file ) {
			$files[ substr( $file->getPathname(), strlen( $root ) + 1 ) ] = $file->getPathname();
		}
		return $files;
	}

	private static function copy( string $from, string $to ): void {
		mkdir( $to, 0700 );
		foreach ( scandir( $from ) as $name ) {
			if ( '.' !== $name && '..' !== $name ) {
				is_dir( $from . '/' . $name ) ? self::copy( $from . '/' . $name, $to . '/' . $name ) : copy( $from . '/' . $name, $to . '/' . $name );
			}
		}
	}
}
