<?php
/**
 * What this site lacks for a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

defined( 'ABSPATH' ) || exit;

/** Collects the missing parts and derives a status for each kind of part. */
final class MissingParts {

	/**
	 * Missing parts in the order in which they were found.
	 *
	 * @var list<array{type: string, name: string, reason: string}>
	 */
	public array $rows = [];

	/**
	 * Kinds of which a part is denied.
	 *
	 * @var array<string, true>
	 */
	private array $denied = [];

	/**
	 * Adds a missing part.
	 *
	 * @param string $type   Kind of the part.
	 * @param string $name   Name of the part.
	 * @param string $reason Why it is missing.
	 * @param bool   $denied Whether the site has it and does not permit it.
	 */
	public function add( string $type, string $name, string $reason, bool $denied = false ): void {
		$this->rows[] = [
			'type'   => $type,
			'name'   => $name,
			'reason' => $reason,
		];
		if ( $denied ) {
			$this->denied[ $type ] = true;
		}
	}

	/**
	 * Returns the status of some kinds together: `available`, `missing` or `denied`.
	 *
	 * @param string ...$types Kinds.
	 */
	public function status( string ...$types ): string {
		if ( [] !== array_intersect_key( $this->denied, array_flip( $types ) ) ) {
			return 'denied';
		}
		return [] === array_intersect( $types, array_column( $this->rows, 'type' ) ) ? 'available' : 'missing';
	}
}
