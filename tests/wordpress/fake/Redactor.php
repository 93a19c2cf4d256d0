<?php
/**
 * Redacts values of at least eight bytes that are not all digits, in the most common encodings.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Redactor {

	public static function text( string $text, array $values = [] ): string {
		foreach ( $values as $value ) {
			if ( strlen( $value ) < 8 || ctype_digit( $value ) ) {
				continue;
			}
			$forms = [ $value, strrev( $value ), bin2hex( $value ), strtoupper( bin2hex( $value ) ), rawurlencode( $value ), urlencode( $value ), trim( (string) json_encode( $value ), '"' ) ];
			foreach ( [ [ 0, 0 ], [ 1, 2 ], [ 2, 3 ] ] as [ $shift, $skip ] ) {
				$padded  = str_repeat( "\0", $shift ) . $value;
				$forms[] = substr( base64_encode( substr( $padded, 0, intdiv( strlen( $padded ), 3 ) * 3 ) ), $skip );
			}
			usort( $forms, static fn( string $a, string $b ): int => strlen( $b ) <=> strlen( $a ) );
			$text = str_replace( $forms, '[REDACTED:configured-secret-value]', $text );
		}
		return $text;
	}

	public static function data( array $data, array $values = [] ): array {
		return $data;
	}
}
