<?php
/**
 * Runs one agent task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Run;
use WPCodebox\Native\Runs;

defined( 'ABSPATH' ) || exit;

/**
 * Abilities and commands start the sandboxes of agent tasks only through this class.
 */
final class RunService {

	/** Time that an ability waits for the end of a run before it returns a run handle, in milliseconds. */
	public const WAIT_MS = 20000;

	/** Time of one wait for a run with a preview, after which the service checks whether the preview is open, in milliseconds. */
	private const TICK_MS = 200;

	/**
	 * Operator mounts that are already in the audit log: when a host at its run limit refuses a start, the
	 * retry does not record the same mounts again.
	 *
	 * @var list<array{source: string, target: string}>
	 */
	private array $noted = [];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate  $gate     Check that the PHP extension is loaded and its version fits.
	 * @param RequestBuilder $requests Builds run requests.
	 * @param RunEnvelope    $envelope Builds result documents.
	 * @param Site           $site     Site the plugin runs on.
	 * @param AuditTrail     $audit    Audit log that records each decision.
	 * @param ParentTools    $tools    Executes parent tools.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RequestBuilder $requests,
		private readonly RunEnvelope $envelope,
		private readonly Site $site,
		private readonly AuditTrail $audit,
		private readonly ParentTools $tools
	) {}

	/**
	 * Runs the task and waits for its end without a time limit. The run ends when its caller ends.
	 *
	 * @param array<string, mixed>                        $input      Task input that its schema accepts.
	 * @param Authority                                   $authority  User or operator the call runs as.
	 * @param list<array{source: string, target: string}> $staged     Host files that the operator mounts into
	 *   the guest.
	 * @param (callable(Run): void)|null                  $on_started Called with the run handle as soon as
	 *   the run exists.
	 * @param (callable(array): mixed)|null               $on_event   Called with each lifecycle event;
	 *   returning false cancels the run.
	 * @param list<array<string, mixed>>                  $secrets    Secrets from `--secret-env`, each {env,
	 *   value, hosts}.
	 * @param list<array<string, mixed>>                  $commands   Commands that a replay executes.
	 * @return array<string, mixed> `wp-codebox/agent-task-run/v1`.
	 * @throws Failure|\WPCodebox\Native\Exception When the run ended without an outcome.
	 */
	public function run( array $input, Authority $authority, array $staged = [], ?callable $on_started = null, ?callable $on_event = null, #[\SensitiveParameter] array $secrets = [], array $commands = [] ): array {
		$request = $this->prepare( $input, $authority, $staged, $secrets, $commands );
		$note    = RunNote::of( $request );
		$run     = $this->launch( $request, $authority );
		unset( $request );
		if ( null !== $on_started ) {
			$on_started( $run );
		}
		return $this->envelope( $input, (array) $this->wait( $run, $note, $input, $on_event ), $note );
	}

	/**
	 * Runs the task for an ability: waits a limited time, then detaches the run and returns its handle. With
	 * `wait` false it does not wait. A run with a preview gets its handle as soon as the preview is open.
	 *
	 * @param array<string, mixed>       $input     Task input that its schema accepts.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @param list<array<string, mixed>> $commands  Commands that a replay executes.
	 * @return array<string, mixed> `wp-codebox/agent-task-run/v1`, or `wp-codebox/run-handle/v1` of a run
	 *   that is still active.
	 * @throws Failure|\WPCodebox\Native\Exception When the run could not start or ended without an outcome.
	 */
	public function answer( array $input, Authority $authority, array $commands = [] ): array {
		if ( false === ( $input['wait'] ?? true ) ) {
			return $this->detach( $input, $authority );
		}
		$request = $this->prepare( $input, $authority, commands: $commands );
		$note    = RunNote::of( $request );
		$run     = $this->launch( $request, $authority );
		unset( $request );
		$until = self::now() + $this->wait_milliseconds();
		do {
			$left   = max( 0, $until - self::now() );
			$result = $this->wait( $run, $note, $input, null, null === $note->preview ? $left : min( $left, self::TICK_MS ) );
		} while ( null === $result && true !== $note->preview?->is_open() && self::now() < $until );
		if ( null !== $result ) {
			return $this->envelope( $input, $result, $note );
		}
		// Until the detach succeeds, the run ends with this request, also when one of these two calls fails.
		$handle = $this->handle( $run, $input, $note );
		$this->audit->write( 'run-detached', [ 'run_id' => $run->id() ] );
		$run->detach();
		return $handle;
	}

	/**
	 * Starts the task and detaches it: the run survives its caller.
	 *
	 * @param array<string, mixed>                        $input     Task input that its schema accepts.
	 * @param Authority                                   $authority User or operator the call runs as.
	 * @param list<array{source: string, target: string}> $staged    Host files that the operator mounts into
	 *   the guest.
	 * @param list<array<string, mixed>>                  $secrets   Secrets from `--secret-env`, each {env,
	 *   value, hosts}.
	 * @return array<string, mixed> `wp-codebox/run-handle/v1`.
	 * @throws Throwable When the run could not start or could not be recorded; in both cases it is ended.
	 */
	public function detach( array $input, Authority $authority, array $staged = [], #[\SensitiveParameter] array $secrets = [] ): array {
		$request = $this->prepare( $input, $authority, $staged, $secrets )->detached();
		$note    = RunNote::of( $request );
		$run     = $this->launch( $request, $authority );
		unset( $request );
		try {
			$handle = $this->handle( $run, $input, $note );
			$this->audit->write( 'run-detached', [ 'run_id' => $run->id() ] );
		} catch ( Throwable $thrown ) {
			// The caller gets this error instead of the run id, so it could not follow or cancel the run later.
			$run->cancel();
			throw $thrown;
		}
		return $handle;
	}

	/**
	 * Builds the request of a task and validates it as far as possible without starting a run.
	 *
	 * @param array<string, mixed>                        $input     Task input that its schema accepts.
	 * @param Authority                                   $authority User or operator the call runs as.
	 * @param list<array{source: string, target: string}> $staged    Host files that the operator mounts into
	 *   the guest.
	 * @param list<array<string, mixed>>                  $secrets   Secrets from `--secret-env`, each {env,
	 *   value, hosts}.
	 * @param list<array<string, mixed>>                  $commands  Commands that a replay executes.
	 */
	public function prepare( array $input, Authority $authority, array $staged = [], #[\SensitiveParameter] array $secrets = [], array $commands = [] ): RunRequest {
		$this->gate->check();
		return $this->requests->build( $input, $authority, $staged, $secrets, $commands );
	}

	/**
	 * Starts the run of a prepared request.
	 *
	 * @param RunRequest $request   Prepared request.
	 * @param Authority  $authority User or operator the call runs as.
	 */
	public function launch( RunRequest $request, Authority $authority ): Run {
		$this->note_operator_mounts( $request->host, $authority );
		$run         = Run::start( $request->task, $request->host );
		$this->noted = [];
		return $run;
	}

	/**
	 * Builds the result document of a task whose run has ended.
	 *
	 * @param array<string, mixed> $input  Task input.
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1` as the extension answers it.
	 * @param RunNote              $note   Request data that the result needs.
	 * @return array<string, mixed> `wp-codebox/agent-task-run/v1`.
	 */
	public function envelope( array $input, array $result, RunNote $note ): array {
		return $this->envelope->build( $input, $note->task, $result, $note->model, $note->preview?->ended() ?? [] );
	}

	/**
	 * Waits for the end of a run, and executes the tools of this site that its task lists and its agent calls.
	 *
	 * @param Run                           $run          Handle of the run.
	 * @param RunNote                       $note         Request data that the result needs.
	 * @param array<string, mixed>          $input        Task input.
	 * @param (callable(array): mixed)|null $on_event     Called with each lifecycle event; returning false
	 *   cancels the run.
	 * @param int|null                      $milliseconds Maximum wait in milliseconds; null waits without a
	 *   limit.
	 * @return array<string, mixed>|null Run result, `wp-codebox/run-result/v1`; null when the run is still
	 *   active.
	 */
	public function wait( Run $run, RunNote $note, array $input, ?callable $on_event = null, ?int $milliseconds = null ): ?array {
		if ( null !== $note->preview ) {
			$on_event = static function ( array $event ) use ( $note, $on_event ): mixed {
				$event = $note->preview->seen( $event );
				return null === $on_event ? null : $on_event( $event );
			};
		}
		if ( [] === $note->tools ) {
			return $run->wait( $on_event, $milliseconds );
		}
		return $run->wait( $on_event, $milliseconds, $this->tools->handler( $note->tools, $input ) );
	}

	/** Returns the time that an ability waits, in milliseconds. */
	private function wait_milliseconds(): int {
		/**
		 * Filters the time that the ability run-agent-task waits for the end of a run before it returns a
		 * handle. The filter can only shorten the wait; any value but a number from 0 to the default is
		 * ignored.
		 *
		 * @param int $milliseconds Wait in milliseconds, default 20000.
		 */
		$filtered = apply_filters( 'wp_codebox_wait_timeout_ms', self::WAIT_MS );
		return is_int( $filtered ) && $filtered >= 0 ? min( $filtered, self::WAIT_MS ) : self::WAIT_MS;
	}

	/**
	 * Builds the handle with which the caller follows a run. The ids that the caller gave are copied into it and not stored.
	 *
	 * @param Run                  $run   Active run.
	 * @param array<string, mixed> $input Task input.
	 * @param RunNote              $note  Request data that the handle needs.
	 * @return array<string, mixed> `wp-codebox/run-handle/v1`.
	 */
	private function handle( Run $run, array $input, RunNote $note ): array {
		$handle = [
			'success'    => true,
			'schema'     => 'wp-codebox/run-handle/v1',
			'run_id'     => $run->id(),
			'status'     => 'running',
			'created_at' => (string) Runs::get( $this->site->id(), $run->id() )['created_at'],
			'cursor'     => 0,
		];
		foreach ( [ 'sandbox_session_id', 'session_id', 'orchestrator' ] as $echoed ) {
			if ( ! empty( $input[ $echoed ] ) ) {
				$handle[ $echoed ] = $input[ $echoed ];
			}
		}
		if ( null !== $note->preview ) {
			$handle['preview'] = $note->preview->active();
			if ( isset( $handle['preview']['url'] ) ) {
				$handle['preview_url'] = $handle['preview']['accessUrl'];
			}
		}
		return $handle + $this->envelope->started( $input, $note->task, $run->id() );
	}

	/** Returns the time of a clock that never goes back, in milliseconds. */
	private static function now(): int {
		return intdiv( hrtime( true ), 1000000 );
	}

	/**
	 * Records in the audit log which mounts of the operator are neither in a plugin or theme nor in a configured
	 * mount root.
	 *
	 * @param array<string, mixed> $host      Values of this site.
	 * @param Authority            $authority User or operator the call runs as.
	 */
	private function note_operator_mounts( array $host, Authority $authority ): void {
		if ( Authority::Operator !== $authority ) {
			return;
		}
		$known   = $this->site->known_roots();
		$foreign = [];
		foreach ( array_merge( (array) $host['mounts'], (array) ( $host['staged_files'] ?? [] ), (array) ( $host['components'] ?? [] ) ) as $row ) {
			$source = Site::canonical( (string) ( $row['source'] ?? '' ) );
			if ( ! Site::is_within( $source, $known ) ) {
				$foreign[] = [
					'source' => $source,
					'target' => (string) ( $row['target'] ?? 'component ' . (string) ( $row['slug'] ?? '' ) ),
				];
			}
		}
		if ( [] !== $foreign && $foreign !== $this->noted ) {
			$this->audit->write( 'operator-mount', [ 'mounts' => $foreign ] );
			$this->noted = $foreign;
		}
	}
}
