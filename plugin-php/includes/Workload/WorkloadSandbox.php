<?php
/**
 * The sandbox in which a workload runs.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use Throwable;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Run;
use WPCodebox\Native\Sandbox;
use WPCodebox\Run\RunRequest;

defined( 'ABSPATH' ) || exit;

/**
 * A run that is held open: it executes each command that this class sends, and ends with this PHP request at the latest,
 * because the run is attached to it. All commands see the same WordPress.
 */
final class WorkloadSandbox {

	/** Name of this client in the journal of the run. */
	private const ACTOR = 'wordpress:workload';

	/** Time to wait for the bundle after the end, in milliseconds. */
	private const END_MS = 120000;

	/** Result of the run once it has ended. @var array<string, mixed>|null */
	private ?array $result = null;

	/**
	 * Keeps the handle of a run.
	 *
	 * @param string $site Id of the site.
	 * @param Run    $run  Handle of the run.
	 */
	private function __construct(
		private readonly string $site,
		private readonly Run $run
	) {}

	/**
	 * Starts a sandbox that stays for further commands.
	 *
	 * @param string     $site    Id of the site.
	 * @param RunRequest $request Request whose field `hold` says how long it stays.
	 */
	public static function start( string $site, RunRequest $request ): self {
		return new self( $site, Run::start( $request->task, $request->host ) );
	}

	/** Returns the id of the run. */
	public function id(): string {
		return $this->run->id();
	}

	/**
	 * Runs a command and returns its result.
	 *
	 * @param string       $command      Command of the registry.
	 * @param list<string> $args         Arguments.
	 * @param int|null     $milliseconds Time limit; null for the rest of the sandbox's life.
	 * @return array<string, mixed> `wp-codebox/runtime-command-result/v1`.
	 * @throws Failure When the sandbox refuses the command. After the end of the sandbox, the error of its run.
	 */
	public function command( string $command, array $args, ?int $milliseconds = null ): array {
		return $this->ask(
			[
				'type' => 'command',
				'call' => [
					'command' => $command,
					'args'    => $args,
				],
			] + ( null === $milliseconds ? [] : [ 'timeout_ms' => $milliseconds ] )
		);
	}

	/**
	 * Runs a program and returns its output.
	 *
	 * @param list<string> $argv Program and arguments.
	 * @return array<string, mixed> `end`, `code`, `stdout`, `stderr`, `output_truncated`.
	 * @throws Failure When the sandbox refuses the program.
	 */
	public function program( array $argv ): array {
		return $this->ask(
			[
				'type'       => 'exec',
				'argv'       => $argv,
				'timeout_ms' => 30000,
			]
		);
	}

	/** Returns whether the sandbox still runs; reads the events that it has sent since the last call. */
	public function alive(): bool {
		$this->result ??= $this->run->wait( null, 0 );
		return null === $this->result;
	}

	/**
	 * Ends the sandbox and returns the result of its run.
	 *
	 * @return array<string, mixed> `wp-codebox/run-result/v1`.
	 * @throws Failure When the run ended without a result.
	 */
	public function end(): array {
		try {
			if ( $this->alive() ) {
				Sandbox::ask( $this->site, $this->run->id(), [ 'type' => 'close' ], [ 'actor' => self::ACTOR ] );
			}
		} catch ( Throwable ) {
			// The sandbox ended by itself meanwhile; its result says why.
			$this->run->cancel();
		}
		$this->result ??= $this->run->wait( null, self::END_MS );
		if ( null === $this->result ) {
			$this->run->cancel();
			throw Failure::because( ErrorCode::RunTimeout, __( 'The sandbox of the workload did not end in time; its run was cancelled.', 'codebox' ) );
		}
		return $this->result;
	}

	/** Ends the sandbox after an error. Ignores errors of the cancellation, so that the caller reports the first error. */
	public function abandon(): void {
		try {
			$this->run->cancel();
		} catch ( Throwable ) {
			// The run ends with this request in any case.
			return;
		}
	}

	/**
	 * Sends a request to the sandbox.
	 *
	 * @param array<string, mixed> $request Request.
	 * @return array<string, mixed>
	 * @throws Failure When the sandbox refuses it or has ended.
	 */
	private function ask( array $request ): array {
		try {
			return Sandbox::ask( $this->site, $this->run->id(), $request, [ 'actor' => self::ACTOR ] );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			if ( in_array( $failure->error_code, [ ErrorCode::SandboxNotHeld->value, ErrorCode::RunNotFound->value, ErrorCode::RunnerUnavailable->value ], true ) ) {
				throw $this->ended( $failure );
			}
			throw $failure;
		}
	}

	/**
	 * Returns the error of the run after its end: it says why the sandbox is gone.
	 *
	 * @param Failure $failure Error of the request.
	 */
	private function ended( Failure $failure ): Failure {
		try {
			$this->result ??= $this->run->wait( null, self::END_MS );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown );
		}
		$error = $this->result['error'] ?? null;
		$code  = is_array( $error ) ? ErrorCode::tryFrom( (string) ( $error['code'] ?? '' ) ) : null;
		return null === $code ? $failure : Failure::because( $code, (string) ( $error['message'] ?? '' ), array_values( (array) ( $error['hints'] ?? [] ) ) );
	}
}
