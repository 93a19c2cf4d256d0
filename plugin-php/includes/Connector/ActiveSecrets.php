<?php
/**
 * Secret values in use by the built-in bridge.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use SensitiveParameterValue;

defined( 'ABSPATH' ) || exit;

/**
 * Holds the values of a connector while a provider request runs. They do not pass through the filter, where
 * every plugin could read them. Requests may nest.
 */
final class ActiveSecrets {

	/**
	 * Values of each running request, innermost last.
	 *
	 * @var list<SensitiveParameterValue>
	 */
	private array $open = [];

	/**
	 * Starts a request.
	 *
	 * @param array<string, string> $values Values by environment name.
	 */
	public function begin( #[\SensitiveParameter] array $values ): void {
		$this->open[] = new SensitiveParameterValue( $values );
	}

	/**
	 * Adds a value that authentication created during the request to the values to redact.
	 *
	 * @param string $value Secret value.
	 */
	public function learn( #[\SensitiveParameter] string $value ): void {
		$last = array_pop( $this->open );
		if ( null !== $last ) {
			$this->open[] = new SensitiveParameterValue( array_merge( $last->getValue(), [ 'learned ' . count( $last->getValue() ) => $value ] ) );
		}
	}

	/**
	 * Returns the innermost request's values by environment name; none outside of a request.
	 *
	 * @return array<string, string>
	 */
	public function values(): array {
		$last = end( $this->open );
		return false === $last ? [] : $last->getValue();
	}

	/**
	 * Ends the innermost request.
	 *
	 * @return list<string> All values of the request.
	 */
	public function end(): array {
		$last = array_pop( $this->open );
		return null === $last ? [] : array_values( $last->getValue() );
	}
}
