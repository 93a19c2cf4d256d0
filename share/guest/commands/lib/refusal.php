<?php
/**
 * Error with which a guest command ends.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Error of a guest command, with a stable code for programs.
 */
final class Refusal extends \RuntimeException {
	/**
	 * Creates the object.
	 *
	 * @param string              $reason   Stable code.
	 * @param string              $message  What is wrong and what to do.
	 * @param array<string,mixed> $document Known fields of the result.
	 */
	public function __construct( public readonly string $reason, string $message, public readonly array $document = array() ) {
		parent::__construct( $message );
	}

	/**
	 * Returns the same error with known fields of the result.
	 *
	 * @param array<string,mixed> $document Known fields of the result.
	 */
	public function with( array $document ): self {
		return new self( $this->reason, $this->getMessage(), $document );
	}

	/**
	 * Creates the error for an invalid input value.
	 *
	 * @param string $what Description of the problem.
	 */
	public static function input( string $what ): self {
		return new self( 'wp_codebox_input_invalid', $what );
	}

	/**
	 * Creates the error for a requirement that this guest lacks.
	 *
	 * @param string $what What is missing and how to provide it.
	 */
	public static function unsupported( string $what ): self {
		return new self( 'wp_codebox_command_unsupported', $what );
	}

	/**
	 * Creates the error for a failed attempt.
	 *
	 * @param string              $what     What happened.
	 * @param array<string,mixed> $document Known fields of the result.
	 */
	public static function failed( string $what, array $document = array() ): self {
		return new self( 'wp_codebox_command_failed', $what, $document );
	}
}
