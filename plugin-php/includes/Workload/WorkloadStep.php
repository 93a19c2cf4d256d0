<?php
/**
 * One step of a workload.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** A command with its arguments, and what its failure means. */
final class WorkloadStep {

	/** Why the sandbox cannot run the command; null when it can. */
	public ?Failure $unsupported = null;

	/** Maximum size of each output of a step in an answer, in characters. */
	private const OUTPUT = 65536;

	/**
	 * Creates a step.
	 *
	 * @param string               $phase        `before`, `steps` or `after`.
	 * @param int                  $index        Position in its phase.
	 * @param string               $command      Command of the registry.
	 * @param list<string>         $args         Arguments, `name=value`.
	 * @param int|null             $milliseconds Time limit; null for none of its own.
	 * @param array<string, bool>  $given        `allowFailure` and `advisory` as given.
	 * @param array<string, mixed> $metadata     Data of the caller.
	 */
	private function __construct(
		public readonly string $phase,
		public readonly int $index,
		public readonly string $command,
		public readonly array $args,
		public readonly ?int $milliseconds,
		private readonly array $given,
		private readonly array $metadata
	) {}

	/**
	 * Reads a row of a phase.
	 *
	 * @param string               $phase Phase.
	 * @param int                  $index Position in its phase.
	 * @param array<string, mixed> $row   Row.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function read( string $phase, int $index, array $row ): self {
		$command = trim( (string) ( $row['command'] ?? '' ) );
		if ( '' === $command ) {
			/* translators: %s: position of a step. */
			throw Failure::invalid_input( Sentence::of( __( 'The step %s has no command.', 'codebox' ), $phase . '[' . $index . ']' ), [], [ 'field' => sprintf( '%s[%d].command', $phase, $index ) ] );
		}
		return new self(
			$phase,
			$index,
			$command,
			array_values( array_map( 'strval', (array) ( $row['args'] ?? [] ) ) ),
			isset( $row['timeoutMs'] ) ? (int) $row['timeoutMs'] : null,
			array_filter( array_intersect_key( $row, array_flip( [ 'allowFailure', 'advisory' ] ) ), 'is_bool' ),
			(array) ( $row['metadata'] ?? [] )
		);
	}

	/** Returns whether the workload succeeds when this step fails. */
	public function may_fail(): bool {
		return in_array( true, $this->given, true );
	}

	/** Returns whether the step also runs after another one failed. */
	public function is_cleanup(): bool {
		return 'after' === $this->phase;
	}

	/**
	 * Returns the row of the step in the answer.
	 *
	 * @param string               $status  `completed`, `failed`, `timed_out`, `skipped` or `unsupported`.
	 * @param array<string, mixed> $members Further members.
	 * @return array<string, mixed>
	 */
	public function row( string $status, array $members = [] ): array {
		return [
			'index'   => $this->index,
			'phase'   => $this->phase,
			'command' => $this->command,
			'args'    => $this->args,
			'status'  => $status,
		] + $this->given + HostAnswer::filled( $members ) + HostAnswer::filled( [ 'metadata' => $this->metadata ] );
	}

	/**
	 * Returns the row of the step after its command ran.
	 *
	 * @param array<string, mixed> $result `wp-codebox/runtime-command-result/v1`.
	 * @return array<string, mixed>
	 */
	public function ran( array $result ): array {
		$good    = 'ok' === ( $result['status'] ?? '' );
		$stdout  = (string) ( $result['stdout'] ?? '' );
		$stderr  = (string) ( $result['stderr'] ?? '' );
		$members = [
			'stdout'       => mb_substr( $stdout, -self::OUTPUT ),
			'stderr'       => mb_substr( $stderr, -self::OUTPUT ),
			'result'       => $result['json'] ?? null,
			'artifactRefs' => $result['artifactRefs'] ?? [],
			'error'        => $result['error'] ?? [],
		];
		if ( mb_strlen( $stdout ) > self::OUTPUT || mb_strlen( $stderr ) > self::OUTPUT ) {
			$members['outputTruncated'] = true;
		}
		$late = ErrorCode::RunTimeout->value === ( $result['error']['code'] ?? '' );
		return $this->row( $good ? 'completed' : ( $late ? 'timed_out' : 'failed' ), $members ) + [
			'exitCode'   => $good ? 0 : 1,
			'durationMs' => (int) ( $result['diagnostics']['timing']['durationMs'] ?? 0 ),
		];
	}

	/**
	 * Returns the row of the step whose command the sandbox refused.
	 *
	 * @param Failure $failure Failure.
	 * @return array<string, mixed>
	 */
	public function refused( Failure $failure ): array {
		return $this->row( ErrorCode::RunTimeout->value === $failure->error_code ? 'timed_out' : 'failed', [ 'error' => $failure->to_array() ] );
	}
}
