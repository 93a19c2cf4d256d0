<?php
/**
 * Secret values of the provider requests that run at the moment.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use SensitiveParameterValue;

defined( 'ABSPATH' ) || exit;

/**
 * Gives a connector's secret values to the built-in provider adapter while a provider request runs. The request itself
 * passes through a filter that every plugin can read, so it contains no secret. Requests may nest.
 */
final class ActiveSecrets {

	/**
	 * Secret values by environment name, one entry per running request, innermost last.
	 *
	 * @var list<SensitiveParameterValue>
	 */
	private array $open = [];

	/**
	 * Makes a connector's secret values available to the provider adapter until the matching `end()`.
	 *
	 * @param array<string, string> $values Secret values by environment name.
	 */
	public function begin( #[\SensitiveParameter] array $values ): void {
		$this->open[] = new SensitiveParameterValue( $values );
	}

	/**
	 * Adds a secret value that authentication created during the request, so that it is redacted from the response.
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
	 * Returns the secret values of the innermost request by environment name; none outside of a request.
	 *
	 * @return array<string, string>
	 */
	public function values(): array {
		$last = end( $this->open );
		return false === $last ? [] : $last->getValue();
	}

	/**
	 * Removes the secret values of the innermost request, and returns them for the redaction of its response.
	 *
	 * @return list<string> All values of the request.
	 */
	public function end(): array {
		$last = array_pop( $this->open );
		return null === $last ? [] : array_values( $last->getValue() );
	}
}
