<?php
/**
 * What stays of a request once its run is started.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Enough to answer for the run; the request itself, which holds secrets, is let go.
 */
final class RunNote {

	/**
	 * Takes the note.
	 *
	 * @param array<string, mixed> $task  `wp-codebox/task-input/v1`.
	 * @param array<string, mixed> $model What may be said of its model; empty without one.
	 * @param list<string>         $tools Ids of the parent tools it lists.
	 */
	private function __construct(
		public readonly array $task,
		public readonly array $model,
		public readonly array $tools
	) {}

	/**
	 * The note of a request.
	 *
	 * @param RunRequest $request Request to handle.
	 */
	public static function of( RunRequest $request ): self {
		return new self(
			$request->document(),
			(array) ( $request->host['provenance']['model'] ?? [] ),
			array_column( (array) ( $request->host['parent_tools']['tools'] ?? [] ), 'id' )
		);
	}
}
