<?php
/**
 * Text of a host plugin, made safe to show.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Names, sources and reasons of a host plugin go into logs, bundles and responses. Each is reduced to one line of
 * limited length and permitted characters, without known secret values.
 */
final class Label {

	private const MOST = 200;

	/**
	 * Returns the cleaned text; '' for any other type.
	 *
	 * @param mixed        $text   Text from the host plugin.
	 * @param list<string> $values Secret values to remove.
	 */
	public static function clean( mixed $text, #[\SensitiveParameter] array $values = [] ): string {
		$text = is_string( $text ) ? $text : '';
		foreach ( $values as $value ) {
			$text = '' === $value ? $text : str_replace( $value, '[redacted]', $text );
		}
		return substr( trim( (string) preg_replace( '#[^A-Za-z0-9._:/@+,()\[\]\'-]+#', ' ', $text ) ), 0, self::MOST );
	}

	/**
	 * Returns a cleaned sentence of a host plugin in any language. A sentence of this plugin stays unchanged.
	 *
	 * @param mixed        $text   Text from the host plugin.
	 * @param list<string> $values Secret values to remove.
	 * @param string       $ours   Sentence of this plugin, used when the host plugin gives none.
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
