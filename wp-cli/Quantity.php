<?php
/**
 * Parsing and formatting of durations and sizes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Converts `500ms`, `90s`, `15m`, `4h`, `1d` to milliseconds and `512M`, `1G`, `4096` to bytes. The extension
 * checks the range.
 */
final class Quantity {

	private const TIMES = [
		'ms' => 1,
		's'  => 1000,
		'm'  => 60000,
		'h'  => 3600000,
		'd'  => 86400000,
	];
	private const SIZES = [
		''  => 1,
		'K' => 1024,
		'M' => 1048576,
		'G' => 1073741824,
	];

	/**
	 * Parses a duration and returns milliseconds.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function milliseconds( string $flag, string $text ): int {
		if ( 1 === preg_match( '/^[0-9]+$/D', $text ) ) {
			/* translators: 1: name of a flag, 2: number as given. */
			throw Failure::invalid_input( Sentence::of( __( '--%1$s=%2$s has no unit: write %2$ss (seconds) or %2$sms (milliseconds).', 'codebox' ), $flag, $text ) );
		}
		if ( 1 !== preg_match( '/^([0-9]{1,9})(ms|s|m|h|d)$/D', $text, $found ) ) {
			/* translators: 1: name of a flag, 2: its value. */
			throw Failure::invalid_input( Sentence::of( __( '--%1$s=%2$s is not a duration such as 500ms, 90s, 15m, 4h or 1d.', 'codebox' ), $flag, $text ) );
		}
		return (int) $found[1] * self::TIMES[ $found[2] ];
	}

	/**
	 * Parses a size and returns bytes.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function bytes( string $flag, string $text ): int {
		if ( 1 !== preg_match( '/^([0-9]{1,12})(?:([KMG])(?:i?B)?)?$/i', trim( $text ), $found ) ) {
			/* translators: 1: name of a flag, 2: its value. */
			throw Failure::invalid_input( Sentence::of( __( '--%1$s=%2$s is not a size; write 512M, 1G or a number of bytes.', 'codebox' ), $flag, $text ) );
		}
		return (int) $found[1] * self::SIZES[ strtoupper( $found[2] ?? '' ) ];
	}

	/**
	 * Parses an integer.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @param int    $from Smallest allowed number.
	 * @param int    $to   Largest allowed number.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function whole( string $flag, string $text, int $from, int $to ): int {
		if ( 1 !== preg_match( '/^[0-9]{1,15}$/D', trim( $text ) ) || (int) $text < $from || (int) $text > $to ) {
			/* translators: 1: name of a flag, 2: its value, 3: smallest number, 4: largest number. */
			throw Failure::invalid_input( Sentence::of( PHP_INT_MAX === $to ? __( '--%1$s=%2$s is not a whole number from %3$d.', 'codebox' ) : __( '--%1$s=%2$s is not a whole number from %3$d to %4$d.', 'codebox' ), $flag, $text, $from, $to ) );
		}
		return (int) $text;
	}

	/**
	 * Formats a size with a unit.
	 *
	 * @param int $bytes Size in bytes.
	 */
	public static function human_bytes( int $bytes ): string {
		return $bytes >= 1048576 ? number_format( $bytes / 1048576, 1 ) . ' MiB' : number_format( $bytes / 1024, 1 ) . ' KiB';
	}

	/**
	 * Formats a duration with a unit.
	 *
	 * @param int $milliseconds Duration in milliseconds.
	 */
	public static function human_time( int $milliseconds ): string {
		return $milliseconds < 1000 ? $milliseconds . ' ms' : number_format( $milliseconds / 1000, 2 ) . ' s';
	}

	/**
	 * Formats the usage of a model, e.g. `12 turns, 34,000 tokens in, 2,100 out, $0.03`.
	 *
	 * @param array<string, mixed> $usage Usage with `turns`, `input_tokens`, `output_tokens`,
	 *   `cost_microusd?`.
	 */
	public static function human_usage( array $usage ): string {
		$number = static fn( string $name ): string => number_format( (int) ( $usage[ $name ] ?? 0 ) );
		$turns  = (int) ( $usage['turns'] ?? 0 );
		$text   = sprintf( '%s %s, %s tokens in, %s out', number_format( $turns ), 1 === $turns ? 'turn' : 'turns', $number( 'input_tokens' ), $number( 'output_tokens' ) );
		if ( isset( $usage['cost_microusd'] ) ) {
			$dollars = (int) $usage['cost_microusd'] / 1e6;
			$text   .= sprintf( ', $%s', number_format( $dollars, $dollars < 0.01 && $dollars > 0 ? 6 : 2 ) );
		}
		return $text;
	}
}
