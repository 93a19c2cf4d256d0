<?php
/**
 * Arguments of a guest command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Arguments of one guest command by name; each method validates the value that it returns.
 */
final class Arguments {
	/**
	 * Creates the object.
	 *
	 * @param array<string,mixed> $values Values by name: strings, or lists of strings for repeated arguments.
	 * @param list<mixed>         $mounts Mounts of the guest: {target, mode}.
	 */
	public function __construct( private readonly array $values, public readonly array $mounts = array() ) {}

	/**
	 * Checks whether an argument was given.
	 *
	 * @param string $name Name of the argument.
	 */
	public function has( string $name ): bool {
		return array_key_exists( $name, $this->values );
	}

	/**
	 * Returns an argument as a string; of a repeated argument the first value.
	 *
	 * @param string $name     Name of the argument.
	 * @param string $fallback Value used when the argument is missing.
	 */
	public function text( string $name, string $fallback = '' ): string {
		$value = $this->values[ $name ] ?? $fallback;
		if ( is_array( $value ) ) {
			$value = $value[0] ?? $fallback;
		}
		return is_bool( $value ) ? ( $value ? 'true' : 'false' ) : (string) $value;
	}

	/**
	 * Returns the first non-blank argument, trimmed; '' when all are missing.
	 *
	 * @param string ...$names Names of the arguments.
	 */
	public function first( string ...$names ): string {
		foreach ( $names as $name ) {
			$value = trim( $this->text( $name ) );
			if ( '' !== $value ) {
				return $value;
			}
		}
		return '';
	}

	/**
	 * Returns the decoded JSON value of an argument.
	 *
	 * @param string $name     Name of the argument.
	 * @param mixed  $fallback Value used when the argument is missing.
	 */
	public function value( string $name, mixed $fallback = null ): mixed {
		if ( '' === trim( $this->text( $name ) ) ) {
			return $fallback;
		}
		try {
			return json_decode( $this->text( $name ), true, 128, JSON_THROW_ON_ERROR );
		} catch ( \JsonException $error ) {
			throw Refusal::input( "$name must be JSON: " . $error->getMessage() );
		}
	}

	/**
	 * Returns an argument as a string; fails when it is missing.
	 *
	 * @param string $name Name of the argument.
	 */
	public function required( string $name ): string {
		$value = $this->text( $name );
		if ( '' === $value ) {
			throw Refusal::input( "$name is required" );
		}
		return $value;
	}

	/**
	 * Returns an argument that must be one of several words.
	 *
	 * @param string       $name     Name of the argument.
	 * @param list<string> $words    Allowed words.
	 * @param string       $fallback Value used when the argument is missing or blank.
	 */
	public function word( string $name, array $words, string $fallback ): string {
		$value = $this->first( $name );
		$value = '' === $value ? $fallback : $value;
		if ( ! in_array( $value, $words, true ) ) {
			throw Refusal::input( sprintf( '%s is %s, but must be one of %s', $name, self::shown( $value ), implode( ', ', $words ) ) );
		}
		return $value;
	}

	/**
	 * Returns a boolean argument: 1, true, yes, on or 0, false, no, off.
	 *
	 * @param string $name     Name of the argument.
	 * @param bool   $fallback Value used when the argument is missing or blank.
	 */
	public function truth( string $name, bool $fallback ): bool {
		return match ( strtolower( $this->first( $name ) ) ) {
			'' => $fallback,
			'1', 'true', 'yes', 'on' => true,
			'0', 'false', 'no', 'off' => false,
			default => throw Refusal::input( sprintf( '%s is %s, but must be true or false', $name, self::shown( $this->text( $name ) ) ) ),
		};
	}

	/**
	 * Returns an integer argument within limits.
	 *
	 * @param string $name     Name of the argument.
	 * @param int    $fallback Value used when the argument is missing or blank.
	 * @param int    $least    Smallest allowed number.
	 * @param int    $most     Largest allowed number.
	 */
	public function number( string $name, int $fallback, int $least, int $most ): int {
		$value = $this->first( $name );
		$value = '' === $value ? (string) $fallback : $value;
		if ( 1 !== preg_match( '/^-?\d{1,15}$/D', $value ) || (int) $value < $least || (int) $value > $most ) {
			throw Refusal::input( sprintf( '%s is %s, but must be a whole number from %d to %d', $name, self::shown( $value ), $least, $most ) );
		}
		return (int) $value;
	}

	/**
	 * Returns an argument that is a JSON object or list; empty when it is missing.
	 *
	 * @param string $name Name of the argument.
	 * @return array<int|string,mixed>
	 */
	public function json( string $name ): array {
		$text = $this->first( $name );
		if ( '' === $text ) {
			return array();
		}
		$value = json_decode( $text, true, 64 );
		if ( ! is_array( $value ) ) {
			throw Refusal::input( "$name must be a JSON object or list" );
		}
		return $value;
	}

	/**
	 * Returns an argument that is a JSON object.
	 *
	 * @param string $name Name of the argument.
	 * @return array<string,mixed>
	 */
	public function object( string $name ): array {
		$value = $this->json( $name );
		if ( array() !== $value && array_is_list( $value ) ) {
			throw Refusal::input( "$name must be a JSON object" );
		}
		return $value;
	}

	/**
	 * Returns an argument that is a JSON object; fails when it has unknown members.
	 *
	 * @param string       $name  Name of the argument.
	 * @param list<string> $known Known members.
	 * @return array<string,mixed>
	 */
	public function record( string $name, array $known ): array {
		return self::closed( $this->object( $name ), $known, $name );
	}

	/**
	 * Returns the given members; fails when one is unknown, because ignoring it would silently change what
	 * the command does.
	 *
	 * @param array<int|string,mixed> $members Members of the object.
	 * @param list<string>            $known   Known members.
	 * @param string                  $name    Name of the object in error messages.
	 * @return array<string,mixed>
	 */
	public static function closed( array $members, array $known, string $name ): array {
		$unknown = array_diff( array_map( 'strval', array_keys( $members ) ), $known );
		if ( array() !== $unknown ) {
			throw Refusal::input( sprintf( '%s has no member %s; it takes %s', $name, self::shown( reset( $unknown ) ), implode( ', ', $known ) ) );
		}
		return $members;
	}

	/**
	 * Returns an argument as a list of strings: a JSON list, or words separated by commas or newlines.
	 *
	 * @param string $name Name of the argument.
	 * @return list<string>
	 */
	public function texts( string $name ): array {
		$text = trim( $this->text( $name ) );
		if ( str_starts_with( $text, '[' ) ) {
			$list = json_decode( $text, true );
			if ( ! is_array( $list ) || array_filter( $list, static fn ( $item ): bool => ! is_string( $item ) ) ) {
				throw Refusal::input( "$name must be a JSON list of strings" );
			}
			return array_values( $list );
		}
		return array_values( array_filter( array_map( 'trim', preg_split( '/[,\r\n]+/', $text ) ?: array() ), static fn ( string $item ): bool => '' !== $item ) );
	}

	/**
	 * Formats a value of the caller for an error message.
	 *
	 * @param mixed $value Value to show.
	 */
	public static function shown( mixed $value ): string {
		$json = (string) json_encode( $value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR );
		return strlen( $json ) > 120 ? mb_strcut( $json, 0, 120 ) . '…' : $json;
	}
}
