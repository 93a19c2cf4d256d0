<?php
/**
 * Text of a guest or a bundle in a form that can be shown.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Removes control and invisible characters, which could control a terminal, hide in a page or imitate other text. Pages of
 * the dashboard, mails and commands use it; for HTML the result still has to be escaped.
 */
final class PlainText {

	// Same characters as HIDDEN in the crate contracts (terminal_text.rs), as a PCRE class; a test compares them.
	private const HIDDEN = '/[\x00-\x08\x0B-\x1F\x7F-\x{9F}\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}'
		. '\x{2028}-\x{202E}\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFFB}\x{1BCA0}-\x{1BCA3}\x{1D173}-\x{1D17A}\x{E0000}-\x{E0FFF}]/u';

	/** C escapes that git writes in quoted file names. */
	private const ESCAPES = [
		"\x07" => '\a',
		"\x08" => '\b',
		"\t"   => '\t',
		"\n"   => '\n',
		"\x0B" => '\v',
		"\x0C" => '\f',
		"\r"   => '\r',
		'"'    => '\"',
		'\\'   => '\\\\',
	];

	/**
	 * Returns the text as valid UTF-8 without hidden characters.
	 *
	 * @param string $text Any text.
	 */
	public static function of( string $text ): string {
		// PCRE returns null for text that is not UTF-8. Other text needs no mbstring, so that notices work without it.
		return preg_replace( self::HIDDEN, '', $text ) ?? (string) preg_replace( self::HIDDEN, '', mb_convert_encoding( $text, 'UTF-8', 'UTF-8' ) );
	}

	/**
	 * Returns JSON with hidden characters escaped; in JSON only strings can hold such characters.
	 *
	 * @param string $json JSON text in UTF-8.
	 */
	public static function json( string $json ): string {
		return (string) preg_replace_callback(
			self::HIDDEN,
			// JSON escapes a character above U+FFFF as a surrogate pair.
			static fn( array $found ): string => '\u' . implode( '\u', str_split( bin2hex( (string) mb_convert_encoding( $found[0], 'UTF-16BE', 'UTF-8' ) ), 4 ) ),
			$json
		);
	}

	/**
	 * Returns a file name for output, even into a pipe: quoted like git quotes it when the name holds a
	 * hidden character, a quote or a backslash. One row is then always one name.
	 *
	 * @param string $path Path as the supervisor reports it.
	 */
	public static function file_name( string $path ): string {
		$path = mb_convert_encoding( $path, 'UTF-8', 'UTF-8' );
		$odd  = false !== strpbrk( $path, "\"\\\n\t" ) || 1 === preg_match( self::HIDDEN, $path );
		// The supervisor already quotes a guest path that is not UTF-8.
		if ( ! $odd || 1 === preg_match( '~^"/(?:[^"\\\\]|\\\\[0-3][0-7]{2}|\\\\["\\\\abtnvfr])*"$~D', $path ) ) {
			return $path;
		}
		$escape = static fn( string $character ): string => self::ESCAPES[ $character ] ?? implode( '', array_map( static fn( string $byte ): string => sprintf( '\\%03o', ord( $byte ) ), str_split( $character ) ) );
		$signs  = mb_str_split( $path );
		foreach ( $signs as $at => $character ) {
			if ( isset( self::ESCAPES[ $character ] ) || 1 === preg_match( self::HIDDEN, $character ) ) {
				$signs[ $at ] = $escape( $character );
			}
		}
		return '"' . implode( '', $signs ) . '"';
	}
}
