<?php
/**
 * Data about a request that is needed after its run starts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Holds what is needed to build the result; the request itself, which contains secrets, is released.
 */
final class RunNote {

	/**
	 * Creates the note.
	 *
	 * @param array<string, mixed> $task  `wp-codebox/task-input/v1`.
	 * @param array<string, mixed> $model Recordable model data; empty without a model.
	 * @param list<string>         $tools Ids of the listed parent tools.
	 */
	private function __construct(
		public readonly array $task,
		public readonly array $model,
		public readonly array $tools
	) {}

	/**
	 * Creates the note of a request.
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
