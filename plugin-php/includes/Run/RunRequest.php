<?php
/**
 * Run request for the PHP extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Native\AgentTask;

defined( 'ABSPATH' ) || exit;

/** Keeps the caller's fields and this site's fields apart: the extension decides which of the two may set a field. */
final class RunRequest {

	private const DOCUMENT = [ 'target', 'expected_artifacts', 'structured_artifacts', 'context' ];

	/**
	 * Creates a run request.
	 *
	 * @param array<string, mixed> $task Input of the caller.
	 * @param array<string, mixed> $host Values of this site, which override the caller's.
	 */
	public function __construct(
		#[\SensitiveParameter] public readonly array $task,
		#[\SensitiveParameter] public readonly array $host
	) {}

	/** Returns the same request for a run that survives its caller. */
	public function detached(): self {
		return new self( $this->task, [ 'mode' => 'detached' ] + $this->host );
	}

	/**
	 * Returns the task document that the agent reads in its sandbox.
	 *
	 * @return array<string, mixed> `wp-codebox/task-input/v1`.
	 */
	public function document(): array {
		$task    = AgentTask::input( $this->task );
		$allowed = (array) ( $this->host['allowed_tools'] ?? [] );
		return [
			'schema'  => 'wp-codebox/task-input/v1',
			'version' => 1,
			'goal'    => (string) ( $task['goal'] ?? '' ),
		] + array_filter( array_intersect_key( $task, array_flip( self::DOCUMENT ) ) ) + array_filter( [ 'allowed_tools' => $allowed ] );
	}
}
