<?php
/**
 * Why an operation of the workspace tools is not carried out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * A reason in one word, and a sentence that says what to do.
 */
final class Refusal extends \RuntimeException {
	/**
	 * @param string $reason  `request`, `outside`, `git`, `missing`, `kind`, `limit`, `changed` or `io`.
	 * @param string $message What is wrong and what to do.
	 */
	public function __construct( public readonly string $reason, string $message ) {
		parent::__construct( $message );
	}
}
