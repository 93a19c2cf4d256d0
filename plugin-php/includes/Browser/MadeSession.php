<?php
/**
 * A browser session that was just made.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** What the answers about a new session are built from. */
final class MadeSession {

	/**
	 * Creates the value.
	 *
	 * @param array<string, mixed>       $input    Normalized input.
	 * @param Owner                      $owner    Caller.
	 * @param SessionRecord              $record   Record of the session.
	 * @param array<string, mixed>       $runtime  Prepared runtime.
	 * @param array<string, mixed>       $contract Assets of the session.
	 * @param list<array<string, mixed>> $files    Artifact files of the sandbox.
	 * @param list<string>               $missing  Connectors that cannot be used.
	 * @param bool                       $kept     Whether the runtime is stored.
	 */
	public function __construct(
		public readonly array $input,
		public readonly Owner $owner,
		public readonly SessionRecord $record,
		public readonly array $runtime,
		public readonly array $contract,
		public readonly array $files,
		public readonly array $missing,
		public readonly bool $kept
	) {}
}
