<?php
/**
 * Text of a host plugin, fit to be shown.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Names, sources and reasons travel into logs, bundles and answers: one line, few characters,
 * short, and never a value that is known.
 */
final class Label {

	private const MOST = 200;

	/**
	 * The text; anything but a text is empty.
	 *
	 * @param mixed        $text   Response text.
	 * @param list<string> $values Values that must not be in it.
	 */
	public static function clean( mixed $text, #[\SensitiveParameter] array $values = [] ): string {
		$text = is_string( $text ) ? $text : '';
		foreach ( $values as $value ) {
			$text = '' === $value ? $text : str_replace( $value, '[redacted]', $text );
		}
		return substr( trim( (string) preg_replace( '#[^A-Za-z0-9._:/@+,()\[\]\'-]+#', ' ', $text ) ), 0, self::MOST );
	}

	/**
	 * A sentence of a host plugin, in any language. One of this plugin is left as it is.
	 *
	 * @param mixed        $text   Response text.
	 * @param list<string> $values Values that must not be in it.
	 * @param string       $ours   What this plugin says when the host plugin says nothing else.
	 */
	public static function sentence( mixed $text, #[\SensitiveParameter] array $values, string $ours = '' ): string {
		if ( null === $text || $text === $ours ) {
			return $ours;
		}
		$text = is_string( $text ) ? wp_check_invalid_utf8( $text, true ) : '';
		foreach ( array_filter( $values ) as $value ) {
			$text = str_replace( $value, '[redacted]', $text );
		}
		return mb_substr( trim( (string) preg_replace( '#[^\pL\pM\pN._:;/@+,()\[\]\'-]+#u', ' ', $text ) ), 0, self::MOST );
	}
}
