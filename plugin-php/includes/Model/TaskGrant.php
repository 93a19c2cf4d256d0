<?php
/**
 * Model and credentials granted to a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Holds what a task may use until the run request is built. It contains secret values and is not stored.
 */
final class TaskGrant {

	/**
	 * Creates the set of what a task may use.
	 *
	 * @param array<string, mixed> $model   Model in the form of the run request; empty without a model.
	 * @param list<array{env: string, value: string, hosts: list<string>}> $secrets Secrets, rows of the run
	 *   request.
	 * @param array<string, mixed> $record  Data about model and credentials that may be stored: names, statuses and sources.
	 */
	public function __construct(
		public readonly array $model,
		#[\SensitiveParameter] public readonly array $secrets,
		public readonly array $record
	) {}

	/** Checks whether the sandbox gets a placeholder for any secret. A key that only the model uses stays on the host. */
	public function for_guest(): bool {
		$key = $this->model['secret'] ?? '';
		return [] !== array_filter( $this->secrets, static fn( array $row ): bool => [] !== $row['hosts'] || $row['env'] !== $key );
	}
}
