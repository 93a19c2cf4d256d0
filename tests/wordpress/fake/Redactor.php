<?php
/**
 * The stand-in redacts nothing.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Redactor {

	public static function text( string $text, array $values = [] ): string {
		return str_replace( $values, '[REDACTED:value]', $text );
	}

	public static function data( array $data, array $values = [] ): array {
		return $data;
	}
}
