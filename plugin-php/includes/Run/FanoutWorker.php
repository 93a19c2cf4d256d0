<?php
/**
 * One worker of a fan-out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * A worker as planned.
 */
final class FanoutWorker {

	/**
	 * Collects it.
	 *
	 * @param string               $id         Id, unique in the plan.
	 * @param int                  $index      Position, from 0.
	 * @param array<string, mixed> $input      Valid input of run-agent-task.
	 * @param list<string>         $depends_on Workers that must be completed first.
	 * @param bool                 $required   Whether the fan-out is not good without it.
	 */
	public function __construct(
		public readonly string $id,
		public readonly int $index,
		public readonly array $input,
		public readonly array $depends_on,
		public readonly bool $required
	) {}
}
