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
}
