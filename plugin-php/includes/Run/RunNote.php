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
	 * Creates the data from its parts.
	 *
	 * @param array<string, mixed> $task    `wp-codebox/task-input/v1`.
	 * @param array<string, mixed> $model   Model data without secret values; empty without a model.
	 * @param list<string>         $tools   Ids of this site's tools that the task lists.
	 * @param Preview|null         $preview Preview of the run; null without one.
	 */
	private function __construct(
		public readonly array $task,
		public readonly array $model,
		public readonly array $tools,
		public readonly ?Preview $preview
	) {}

	/**
	 * Copies what the result needs from a run request.
	 *
	 * @param RunRequest $request Request of the run.
	 */
	public static function of( RunRequest $request ): self {
		$preview = $request->host['hold']['preview'] ?? null;
		return new self(
			$request->document(),
			(array) ( $request->host['provenance']['model'] ?? [] ),
			array_column( (array) ( $request->host['parent_tools']['tools'] ?? [] ), 'id' ),
			null === $preview ? null : new Preview( (string) ( $preview['public_url'] ?? '' ), (string) ( $preview['token'] ?? '' ) )
		);
	}
}
