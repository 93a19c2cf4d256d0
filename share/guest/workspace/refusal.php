<?php
/**
 * Error with which an operation of the workspace tools ends.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Error of a workspace operation: a reason code, and a message that says what to do.
 */
final class Refusal extends \RuntimeException {
	/**
	 * @param string $reason  Reason code: `request`, `outside`, `git`, `missing`, `kind`, `limit`, `changed`
	 *   or `io`.
	 * @param string $message What is wrong and what to do.
	 */
	public function __construct( public readonly string $reason, string $message ) {
		parent::__construct( $message );
	}
}
