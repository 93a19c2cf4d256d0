<?php
/**
 * The handle of a run of the stand-in extension. A separate process (`supervise.php`) does the work
 * and ends with its caller unless it is detached.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

use WPCodebox\Run\TaskTexts;

final class Run {

	private readonly string $id;
	private readonly string $directory;

	/** Process of the run. Freeing this handle closes its input: the caller ended. @var resource */
	private $lifeline;

	private int $seen = 0;

	private function __construct( array $request ) {
		if ( count( Runs::alive( $request['site'] ) ) >= min( $request['max_runs'] ?? 256, (int) ( getenv( 'WP_CODEBOX_FAKE_MAX_RUNS' ) ?: 8 ) ) ) {
			throw Exception::make( 'wp_codebox_busy', 'As many runs are alive as this host allows; wait for one to end.' );
		}
		$this->id        = 'run_' . bin2hex( random_bytes( 16 ) );
		$this->directory = Runs::directory( $request['site'] ) . '/' . $this->id;
		mkdir( $this->directory, 0700, true );
		file_put_contents( $this->directory . '/created', ( new \DateTimeImmutable( 'now', new \DateTimeZone( 'UTC' ) ) )->format( 'Y-m-d\TH:i:s.v\Z' ) );
		// Like the real extension: values of secrets are in memory only.
		foreach ( array_keys( $request['secrets'] ?? [] ) as $row ) {
			unset( $request['secrets'][ $row ]['value'] );
		}
		file_put_contents( $this->directory . '/request.json', json_encode( $request ) );
		touch( $this->directory . '/events.jsonl' );
		if ( 'detached' === ( $request['mode'] ?? 'attached' ) ) {
			touch( $this->directory . '/detached' );
		}
		$command = sprintf( 'exec 3<&0; setsid %s -n %s %s <&3 3<&- >/dev/null 2>%s &', escapeshellarg( PHP_BINARY ), escapeshellarg( __DIR__ . '/supervise.php' ), escapeshellarg( $this->directory ), escapeshellarg( $this->directory . '/stderr' ) );
		$this->lifeline = proc_open( [ 'sh', '-c', $command ], [ [ 'pipe', 'r' ], [ 'file', '/dev/null', 'w' ], [ 'file', '/dev/null', 'w' ] ], $pipes );
		while ( ! is_file( $this->directory . '/accepted' ) ) {
			usleep( 2000 );
			clearstatcache();
		}
	}

	public static function start( array $task, array $host ): Run {
		self::validate( $task, $host );
		$request = self::request( $task, $host );
		foreach ( $request['mounts'] as $mount ) {
			$real = realpath( $mount['source'] );
			if ( false === $real || ! is_dir( $real ) ) {
				throw Exception::make( 'wp_codebox_mount_source_invalid', sprintf( 'The source of %s does not exist.', $mount['target'] ) );
			}
			$outside = isset( $request['allowed_roots'] ) && [] === array_filter( $request['allowed_roots'], static fn( string $root ): bool => str_starts_with( $real . '/', $root . '/' ) );
			$holds   = [] !== array_filter( $request['denied'], static fn( string $denied ): bool => str_starts_with( $denied . '/', $real . '/' ) );
			$code    = array_merge( $request['code_roots'] ?? [], $request['allowed_roots'] ?? [] );
			$below   = static fn( array $roots ): bool => [] !== array_filter( $roots, static fn( string $root ): bool => str_starts_with( $real . '/', $root . '/' ) );
			if ( $outside || $holds || ( $below( $request['denied'] ) && ! $below( $code ) ) ) {
				throw Exception::make( 'wp_codebox_mount_denied', sprintf( '%s must not be mounted.', $mount['target'] ) );
			}
		}
		if ( '1' === getenv( 'WP_CODEBOX_FAKE_NO_START' ) ) {
			throw Exception::make( 'wp_codebox_sandbox_start_failed', 'The sandbox could not start.', [ 'Allow user namespaces.' ] );
		}
		$log = getenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
		if ( $log ) {
			file_put_contents( $log, json_encode( $request ) );
		}
		return new self( $request );
	}

	/** Merges both arguments into a request: fields of the host replace those of the caller. */
	private static function request( array $task, array $host ): array {
		foreach ( $host as $field => $value ) {
			if ( null === $value ) {
				unset( $task[ $field ], $host[ $field ] );
			}
		}
		$fields = $host + $task;
		$inner  = [ 'schema' => 'wp-codebox/task-input/v1', 'version' => 1, 'goal' => (string) ( $fields['goal'] ?? '' ) ] + array_filter( array_intersect_key( $fields, array_flip( [ ...TaskTexts::NAMES, 'target', 'allowed_tools', 'expected_artifacts', 'structured_artifacts', 'context' ] ) ) );
		$named  = [ 'agent' => 'resolved_agent', 'model' => 'resolved_model', 'tool_policy' => 'sandbox_tool_policy' ];

		$request = array_diff_key( $host, array_flip( $named ), [ 'allowed_tools' => 1 ] ) + array_intersect_key( $task, array_flip( [ 'code', 'code_file', 'checks', 'policy', 'limits', 'find_renames', 'placement' ] ) ) + [ 'task_input' => $inner ];
		foreach ( $named as $name => $field ) {
			if ( isset( $fields[ $field ] ) ) {
				$request[ $name ] = $fields[ $field ];
			}
		}
		if ( ! empty( $task['metadata'] ) ) {
			$request['provenance']['metadata'] = $task['metadata'];
		}
		return array_filter( $request, static fn( mixed $value, string $name ): bool => [] !== $value || in_array( $name, [ 'mounts', 'denied', 'code_roots', 'allowed_roots' ], true ), ARRAY_FILTER_USE_BOTH );
	}

	public static function validate( array $task, array $host ): void {
		$caller = array_column( array_filter( self::fields(), static fn( array $row ): bool => 'caller' === $row['authority'] ), 'name' );
		$known  = array_column( array_filter( self::fields(), static fn( array $row ): bool => 'operator' !== $row['authority'] ), 'name' );
		foreach ( [ array_diff( array_keys( $task ), $caller, [ 'code', 'code_file' ] ), array_diff( array_keys( $host ), $known ) ] as $unknown ) {
			if ( [] !== $unknown ) {
				throw Exception::make( 'wp_codebox_input_invalid', 'There is no field ' . reset( $unknown ) . '.' );
			}
		}
		$request = self::request( $task, $host );
		foreach ( [ 'code', 'code_file' ] as $field ) {
			if ( array_key_exists( $field, $request ) ) {
				throw Exception::make( 'wp_codebox_raw_code_forbidden', $field . ' is not accepted: a task carries a goal, never code.' );
			}
		}
		if ( '' === trim( (string) ( $request['task_input']['goal'] ?? '' ) ) ) {
			throw Exception::make( 'wp_codebox_task_missing', 'No goal was given; say what the agent shall do.' );
		}
		foreach ( isset( $request['policy'] ) ? Policy::validate( $request['policy'] ) : [] as $issue ) {
			throw Exception::make( 'unenforceable' === $issue['code'] ? 'wp_codebox_policy_unenforceable' : 'runtime-policy-invalid', $issue['field'] . ' ' . $issue['message'] );
		}
		if ( ! in_array( $request['mode'] ?? 'attached', [ 'attached', 'detached' ], true ) ) {
			throw Exception::make( 'wp_codebox_input_invalid', 'mode is attached or detached.' );
		}
		if ( ! in_array( $request['agent']['kind'] ?? 'command', [ 'command', 'preset', 'model', 'ability' ], true ) ) {
			throw Exception::make( 'wp_codebox_input_invalid', 'agent.kind is command, preset, model or ability.' );
		}
		foreach ( $request['mounts'] ?? [] as $row => $mount ) {
			if ( ! in_array( $mount['git'] ?? 'none', [ 'baseline', 'none' ], true ) ) {
				throw Exception::make( 'wp_codebox_git_unavailable', "mounts[$row].git must be baseline or none." );
			}
		}
		foreach ( $request['secrets'] ?? [] as $secret ) {
			if ( [] === $secret['hosts'] && ( $request['model']['secret'] ?? '' ) !== $secret['env'] ) {
				throw Exception::make( 'wp_codebox_secret_invalid', $secret['env'] . ' needs the hosts that it may go to.' );
			}
		}
		if ( isset( $request['tool_policy'] ) && ( 'wp-codebox/sandbox-tool-policy/v1' !== ( $request['tool_policy']['schema'] ?? '' ) || ! is_array( $request['tool_policy']['tools'] ?? null ) ) ) {
			throw Exception::make( 'wp_codebox_sandbox_tool_policy_invalid', 'tool_policy must have schema, version and tools.' );
		}
		if ( isset( $request['limits']['processes'] ) && $request['limits']['processes'] < 4 ) {
			throw Exception::make( 'wp_codebox_limit_invalid', 'limits.processes must be from 4 to 4096.' );
		}
	}

	/** Fields of a task and who may set each, as in the real extension. */
	private static function fields(): array {
		return json_decode( (string) file_get_contents( __DIR__ . '/task-fields.json' ), true );
	}

	public static function splitCommand( string $line ): array {
		if ( 1 !== preg_match_all( '/\S/', $line ) && '' === trim( $line ) ) {
			return [];
		}
		preg_match_all( '/(?:[^\s\'"\\\\]+|\'[^\']*\'|"[^"]*"|\\\\.)+/', $line, $found );
		return array_map( static fn( string $word ): string => (string) preg_replace_callback( '/\'([^\']*)\'|"([^"]*)"|\\\\(.)/', static fn( array $part ): string => implode( '', array_slice( $part, 1 ) ), $word ), $found[0] );
	}

	public static function stageCommands( array $lines ): array {
		$files = [];
		$word  = static function ( string $word ) use ( &$files ): string {
			if ( ! str_starts_with( $word, '/' ) || 1 === preg_match( '#^/(usr|bin|workspace|wordpress)/#', $word ) || ! is_file( $word ) ) {
				return $word;
			}
			if ( 1 === preg_match( '#(^|/)(\.[^/]*|id_[^/]*|wp-config[^/]*\.php|[^/]*\.(pem|key))$|/\.ssh/#i', $word ) ) {
				throw Exception::make( 'wp_codebox_mount_denied', 'the path of the file ' . basename( $word ) . ' looks like that of a secret, so the file is not put into the sandbox; leave it out of the command line, or name another file' );
			}
			$real            = (string) realpath( $word );
			$files[ $real ] ??= '/run/codebox/staged/' . count( $files ) . '-' . preg_replace( '/[^A-Za-z0-9._-]/', '_', basename( $word ) );
			return $files[ $real ];
		};
		$quote = static fn( string $word ): string => 1 === preg_match( '#^[A-Za-z0-9_./:=@%+,-]+$#', $word ) ? $word : "'" . str_replace( "'", "'\\''", $word ) . "'";
		foreach ( $lines as &$line ) {
			$words   = self::splitCommand( $line );
			$changed = array_map( $word, $words );
			$line    = $changed === $words ? $line : implode( ' ', array_map( $quote, $changed ) );
		}
		return [
			'lines' => $lines,
			'files' => array_map( static fn( string $source, string $target ): array => compact( 'source', 'target' ), array_keys( $files ), array_values( $files ) ),
		];
	}

	public function id(): string {
		return $this->id;
	}

	public function cancel(): void {
		touch( $this->directory . '/cancel' );
	}

	public function detach(): void {
		touch( $this->directory . '/detached' );
	}

	public function wait( ?callable $onEvent = null, ?int $timeoutMs = null, ?callable $onToolRequest = null ): ?array {
		if ( null !== $timeoutMs && $timeoutMs < 0 ) {
			throw Exception::make( 'wp_codebox_input_invalid', 'The timeout is negative.' );
		}
		$until = null === $timeoutMs ? INF : microtime( true ) + $timeoutMs / 1000;
		do {
			clearstatcache();
			$ended = is_file( $this->directory . '/result.json' );
			foreach ( array_slice( Runs::journal( $this->directory ), $this->seen ) as $event ) {
				++$this->seen;
				if ( null !== $onEvent && false === $onEvent( $event ) ) {
					$this->cancel();
				}
			}
			$this->answer( $onToolRequest );
			if ( $ended ) {
				return json_decode( (string) file_get_contents( $this->directory . '/result.json' ), true );
			}
			if ( ! Runs::is_alive( $this->directory ) && ! is_file( $this->directory . '/result.json' ) ) {
				throw Exception::make( 'wp_codebox_run_failed', 'The stand-in died: ' . file_get_contents( $this->directory . '/stderr' ) );
			}
			$left = $until - microtime( true );
			if ( $left > 0 ) {
				usleep( (int) min( 10000, 1000000 * $left ) );
			}
		} while ( $left > 0 );
		return null;
	}

	/** Answers the agent's calls of parent tools (abilities of this site) with the handler. */
	private function answer( ?callable $handler ): void {
		foreach ( glob( $this->directory . '/ask-*.json' ) ?: [] as $file ) {
			$reply = str_replace( '/ask-', '/reply-', $file );
			if ( ! is_file( $reply ) ) {
				$request = json_decode( (string) file_get_contents( $file ), true );
				file_put_contents( $reply . '.tmp', json_encode( null === $handler ? [ 'status' => 'unavailable' ] : $handler( $request ) ) );
				rename( $reply . '.tmp', $reply );
			}
		}
	}
}
