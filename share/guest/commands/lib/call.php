<?php
/**
 * What a command is asked.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Commands;

/**
 * A call: `{command, args: {name: value|[values]}, mounts: [{target, workspace, mode}], site:
 * {url, path}}`. Forms of values were judged before the guest got them.
 */
final class Call {

	/**
	 * Makes it.
	 *
	 * @param string                      $command Command id.
	 * @param array<string, mixed>        $args    Values by name; a repeatable argument has a list.
	 * @param list<array<string, string>> $mounts  Mounts.
	 * @param array<string, string>       $site    The guest's own site.
	 */
	public function __construct( public readonly string $command, private array $args, public readonly array $mounts, public readonly array $site ) {}

	/**
	 * Whether an argument is there and not blank.
	 *
	 * @param string $name Argument.
	 */
	public function has( string $name ): bool {
		return '' !== trim( $this->text( $name ) );
	}

	/**
	 * The text of an argument.
	 *
	 * @param string $name Argument.
	 * @param string $otherwise What it is when it was not given.
	 */
	public function text( string $name, string $otherwise = '' ): string {
		$value = $this->args[ $name ] ?? $otherwise;
		return is_array( $value ) ? (string) reset( $value ) : (string) $value;
	}

	/**
	 * The first of several arguments that is there, trimmed; empty when none is.
	 *
	 * @param string ...$names Arguments.
	 */
	public function first( string ...$names ): string {
		foreach ( $names as $name ) {
			if ( $this->has( $name ) ) {
				return trim( $this->text( $name ) );
			}
		}
		return '';
	}

	/**
	 * Every value of a repeatable argument.
	 *
	 * @param string $name Argument.
	 * @return list<string>
	 */
	public function all( string $name ): array {
		return array_map( 'strval', array_values( (array) ( $this->args[ $name ] ?? array() ) ) );
	}

	/**
	 * The words of an argument that are separated by commas.
	 *
	 * @param string $name Argument.
	 * @return list<string>
	 */
	public function words( string $name ): array {
		return array_values( array_filter( array_map( 'trim', explode( ',', $this->text( $name ) ) ), static fn( string $word ): bool => '' !== $word ) );
	}

	/**
	 * A boolean argument.
	 *
	 * @param string $name      Argument.
	 * @param bool   $otherwise What it is when it was not given.
	 */
	public function flag( string $name, bool $otherwise = false ): bool {
		return $this->has( $name ) ? in_array( $this->text( $name ), array( '1', 'true', 'yes', 'on' ), true ) : $otherwise;
	}

	/**
	 * A whole number.
	 *
	 * @param string $name      Argument.
	 * @param int    $otherwise What it is when it was not given.
	 */
	public function integer( string $name, int $otherwise ): int {
		return $this->has( $name ) ? (int) $this->text( $name ) : $otherwise;
	}

	/**
	 * The value of an argument that is JSON.
	 *
	 * @param string $name      Argument.
	 * @param mixed  $otherwise What it is when it was not given.
	 * @throws Refusal When it is no JSON.
	 */
	public function json( string $name, mixed $otherwise = null ): mixed {
		if ( ! $this->has( $name ) ) {
			return $otherwise;
		}
		try {
			return json_decode( $this->text( $name ), true, 128, JSON_THROW_ON_ERROR );
		} catch ( \JsonException $error ) {
			throw new Refusal( 'argument', $name . ' must be JSON: ' . $error->getMessage() );
		}
	}

	/**
	 * The value of an argument that is a JSON object or list.
	 *
	 * @param string $name Argument.
	 * @return array<mixed>
	 * @throws Refusal When it is something else.
	 */
	public function map( string $name ): array {
		$value = $this->json( $name, array() );
		if ( ! is_array( $value ) ) {
			throw new Refusal( 'argument', $name . ' must be a JSON object or list' );
		}
		return $value;
	}

	/**
	 * The same call for another command or with other arguments.
	 *
	 * @param string               $command Command id.
	 * @param array<string, mixed> $args    Values by name.
	 */
	public function with( string $command, array $args ): self {
		return new self( $command, $args, $this->mounts, $this->site );
	}
}
