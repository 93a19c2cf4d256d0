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
 * Value object on the way into a run request; it is not stored.
 */
final class TaskGrant {

	/**
	 * Creates the grant.
	 *
	 * @param array<string, mixed> $model   Model in the extension's form; empty without one.
	 * @param list<array{env: string, value: string, hosts: list<string>}> $secrets Secrets in the extension's
	 *   form.
	 * @param array<string, mixed> $record  Data that may be recorded: names, statuses and sources.
	 */
	public function __construct(
		public readonly array $model,
		#[\SensitiveParameter] public readonly array $secrets,
		public readonly array $record
	) {}

	/** Checks whether the sandbox gets a placeholder for a secret; the model's own key stays on the host. */
	public function for_guest(): bool {
		$key = $this->model['secret'] ?? '';
		return [] !== array_filter( $this->secrets, static fn( array $row ): bool => [] !== $row['hosts'] || $row['env'] !== $key );
	}
}
