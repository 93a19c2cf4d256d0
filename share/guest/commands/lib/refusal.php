<?php
/**
 * Why a command does not do what it was asked.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * A refusal with a stable code.
 */
final class Refusal extends \RuntimeException {
	/**
	 * Makes it.
	 *
	 * @param string              $reason   Stable code.
	 * @param string              $message  What is wrong and what to do.
	 * @param array<string,mixed> $document What is known nevertheless.
	 */
	public function __construct( public readonly string $reason, string $message, public readonly array $document = array() ) {
		parent::__construct( $message );
	}

	/**
	 * A value of the input is not accepted.
	 *
	 * @param string $what What is wrong with it.
	 */
	public static function input( string $what ): self {
		return new self( 'wp_codebox_input_invalid', $what );
	}

	/**
	 * This guest has not what it takes.
	 *
	 * @param string $what What is missing and how to provide it.
	 */
	public static function unsupported( string $what ): self {
		return new self( 'wp_codebox_command_unsupported', $what );
	}

	/**
	 * It was tried and did not work.
	 *
	 * @param string              $what     What happened.
	 * @param array<string,mixed> $document What is known nevertheless.
	 */
	public static function failed( string $what, array $document = array() ): self {
		return new self( 'wp_codebox_command_failed', $what, $document );
	}
}
