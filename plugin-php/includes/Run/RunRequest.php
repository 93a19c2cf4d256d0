<?php
/**
 * Request of a run in the extension's form.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/** Holds two arrays that PHP never merges: the extension decides which of them may set a field. */
final class RunRequest {

	private const DOCUMENT = [ 'target', 'expected_artifacts', 'structured_artifacts', 'context' ];

	/**
	 * Creates the request.
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
	 * Returns the task as the agent will read it.
	 *
	 * @return array<string, mixed> `wp-codebox/task-input/v1`.
	 */
	public function document(): array {
		$allowed = (array) ( $this->host['allowed_tools'] ?? [] );
		return [
			'schema'  => 'wp-codebox/task-input/v1',
			'version' => 1,
			'goal'    => (string) ( $this->task['goal'] ?? '' ),
		] + array_filter( array_intersect_key( $this->task, array_flip( self::DOCUMENT ) ) ) + array_filter( [ 'allowed_tools' => $allowed ] );
	}
}
