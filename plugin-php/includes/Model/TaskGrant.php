<?php
/**
 * What a task is given of this site's models and credentials.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * A value on its way into a request; nothing keeps it.
 */
final class TaskGrant {

	/**
	 * Puts it together.
	 *
	 * @param array<string, mixed> $model   The model as the extension takes it; empty without one.
	 * @param list<array{env: string, value: string, hosts: list<string>}> $secrets Secrets as the extension takes them.
	 * @param array<string, mixed> $record  What may be recorded: names, statuses and sources.
	 */
	public function __construct(
		public readonly array $model,
		#[\SensitiveParameter] public readonly array $secrets,
		public readonly array $record
	) {}

	/** Whether the sandbox gets a placeholder for one of them; the model's own key alone is the host's. */
	public function for_guest(): bool {
		$key = $this->model['secret'] ?? '';
		return [] !== array_filter( $this->secrets, static fn( array $row ): bool => [] !== $row['hosts'] || $row['env'] !== $key );
	}
}
