<?php
/**
 * Ids of the rows that a site seed creates.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

/**
 * Which ids the rows of a fixture get.
 */
enum Seed_Ids: string {
	/** Ids that WordPress assigns. */
	case Assigned = 'assigned';
	/** Those of the fixture, where they are free. */
	case Preferred = 'preferred';
	/** Those of the fixture; a row whose id is not free is an error. */
	case Required = 'required';
}
