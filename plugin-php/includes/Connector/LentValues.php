<?php
/**
 * Values that are in use by the built-in bridge.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use SensitiveParameterValue;

defined( 'ABSPATH' ) || exit;

/**
 * The values of a connector while a provider request lasts. They do not travel through the filter,
 * where every plugin would see them. Requests may nest.
 */
final class LentValues {

	/**
	 * Values of each request under way, the innermost last.
	 *
	 * @var list<SensitiveParameterValue>
	 */
	private array $open = [];

	/**
	 * A request begins.
	 *
	 * @param array<string, string> $values By environment name.
	 */
	public function begin( #[\SensitiveParameter] array $values ): void {
		$this->open[] = new SensitiveParameterValue( $values );
	}

	/**
	 * A value came to light on the way: it must not come back either.
	 *
	 * @param string $value The value.
	 */
	public function learn( #[\SensitiveParameter] string $value ): void {
		$last = array_pop( $this->open );
		if ( null !== $last ) {
			$this->open[] = new SensitiveParameterValue( array_merge( $last->getValue(), [ 'learned ' . count( $last->getValue() ) => $value ] ) );
		}
	}

	/**
	 * Values of the innermost request by environment name; none outside of one.
	 *
	 * @return array<string, string>
	 */
	public function values(): array {
		$last = end( $this->open );
		return false === $last ? [] : $last->getValue();
	}

	/**
	 * The innermost request ends.
	 *
	 * @return list<string> All its values.
	 */
	public function end(): array {
		$last = array_pop( $this->open );
		return null === $last ? [] : array_values( $last->getValue() );
	}
}
