<?php
/**
 * The arguments of a command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Values by name; each read says what it accepts.
 */
final class Arguments {
	/**
	 * Makes it.
	 *
	 * @param array<string,mixed> $values Values: strings, or lists of them where repeated.
	 * @param list<mixed>         $mounts Mounts: {target, mode}.
	 */
	public function __construct( private readonly array $values, public readonly array $mounts = array() ) {}

	/**
	 * Whether it was given.
	 *
	 * @param string $name Name of the argument.
	 */
	public function has( string $name ): bool {
		return array_key_exists( $name, $this->values );
	}

	/**
	 * Text; the first value of several.
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
	 * The first of several arguments that is there and not blank, trimmed; empty when none is.
	 *
	 * @param string ...$names Arguments.
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
	 * A JSON value; `$fallback` when it was not given.
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
	 * Text that must be given.
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
	 * One of some words.
	 *
	 * @param string       $name     Name of the argument.
	 * @param list<string> $words    Accepted words.
	 * @param string       $fallback Value used when the argument is missing.
	 */
	public function word( string $name, array $words, string $fallback ): string {
		$value = $this->text( $name, $fallback );
		if ( ! in_array( $value, $words, true ) ) {
			throw Refusal::input( sprintf( '%s is %s, but must be one of %s', $name, self::shown( $value ), implode( ', ', $words ) ) );
		}
		return $value;
	}

	/**
	 * A truth value: 1, true, yes, on or 0, false, no, off.
	 *
	 * @param string $name     Name of the argument.
	 * @param bool   $fallback Value used when the argument is missing.
	 */
	public function truth( string $name, bool $fallback ): bool {
		return match ( strtolower( $this->text( $name, $fallback ? 'true' : 'false' ) ) ) {
			'1', 'true', 'yes', 'on' => true,
			'0', 'false', 'no', 'off', '' => false,
			default => throw Refusal::input( sprintf( '%s is %s, but must be true or false', $name, self::shown( $this->text( $name ) ) ) ),
		};
	}

	/**
	 * Parses an integer.
	 *
	 * @param string $name     Name of the argument.
	 * @param int    $fallback Value used when the argument is missing.
	 * @param int    $least    Smallest.
	 * @param int    $most     Largest.
	 */
	public function number( string $name, int $fallback, int $least, int $most ): int {
		$value = $this->text( $name, (string) $fallback );
		if ( 1 !== preg_match( '/^-?\d{1,15}$/D', $value ) || (int) $value < $least || (int) $value > $most ) {
			throw Refusal::input( sprintf( '%s is %s, but must be a whole number from %d to %d', $name, self::shown( $value ), $least, $most ) );
		}
		return (int) $value;
	}

	/**
	 * A JSON object or list; empty when it was not given.
	 *
	 * @param string $name Name of the argument.
	 * @return array<int|string,mixed>
	 */
	public function json( string $name ): array {
		$text = $this->text( $name );
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
	 * A JSON object.
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
	 * A JSON object whose members are all known.
	 *
	 * @param string       $name  Name of the argument.
	 * @param list<string> $known Its members.
	 * @return array<string,mixed>
	 */
	public function record( string $name, array $known ): array {
		return self::closed( $this->object( $name ), $known, $name );
	}

	/**
	 * An object, unless it has a member that is not known: dropped, it would change what is done
	 * without a word.
	 *
	 * @param array<int|string,mixed> $members Members.
	 * @param list<string>            $known   Known ones.
	 * @param string                  $name    What messages call it.
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
	 * Texts: a JSON list, or words between commas or line ends.
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
	 * A value as messages show it.
	 *
	 * @param mixed $value Value.
	 */
	public static function shown( mixed $value ): string {
		$json = (string) json_encode( $value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR );
		return strlen( $json ) > 120 ? mb_strcut( $json, 0, 120 ) . '…' : $json;
	}
}
