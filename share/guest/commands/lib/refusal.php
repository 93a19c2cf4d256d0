<?php
/**
 * Why a command failed.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Commands;

/**
 * A failure with a word for programs and a sentence for people.
 */
final class Refusal extends \RuntimeException {

	/**
	 * Makes it.
	 *
	 * @param string               $reason   Stable word, like `plugin-missing`.
	 * @param string               $message  What is wrong and what to do.
	 * @param array<string, mixed> $document What the command answers beside the failure.
	 */
	public function __construct( public readonly string $reason, string $message, public readonly array $document = array() ) {
		parent::__construct( $message );
	}
}
