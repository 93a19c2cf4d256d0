<?php
/**
 * English originals of translated sentences.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * A failure is shown in the user's language, but the audit log records it in English, independent of the
 * user. WordPress returns only the translation, so this class stores the original of each translated text. On
 * an English site it stores nothing.
 *
 * Messages of the extension (`Native\Exception`) are English with a stable code and are not translated.
 */
final class Sentence {

	/** @var array<string, string> English original by translated text, only where they differ. */
	private static array $english = [];

	/** Stores the English original of every text that WordPress translates for this plugin. */
	public static function register(): void {
		add_filter(
			'gettext_codebox',
			static function ( string $shown, string $english ): string {
				self::remember( $shown, $english );
				return $shown;
			},
			PHP_INT_MAX,
			2
		);
		add_filter(
			'ngettext_codebox',
			static function ( string $shown, string $one, string $many, int $number ): string {
				self::remember( $shown, 1 === $number ? $one : $many );
				return $shown;
			},
			PHP_INT_MAX,
			4
		);
	}

	/**
	 * Formats a sentence with values like `sprintf()`.
	 *
	 * @param string           $template Translated template.
	 * @param string|int|float ...$values Values; some may be translated sentences themselves.
	 */
	public static function of( string $template, string|int|float ...$values ): string {
		$shown = vsprintf( $template, $values );
		self::remember( $shown, vsprintf( self::english( $template ), array_map( static fn( string|int|float $value ): string|int|float => is_string( $value ) ? self::english( $value ) : $value, $values ) ) );
		return $shown;
	}

	/**
	 * Joins several sentences like `implode()`.
	 *
	 * @param string       $between   Separator.
	 * @param list<string> $sentences Sentences or phrases.
	 */
	public static function join( string $between, array $sentences ): string {
		$shown = implode( $between, $sentences );
		self::remember( $shown, implode( $between, array_map( [ self::class, 'english' ], $sentences ) ) );
		return $shown;
	}

	/**
	 * Returns the English original; a text that was not translated is returned unchanged.
	 *
	 * @param string $shown Text as shown.
	 */
	public static function english( string $shown ): string {
		return self::$english[ $shown ] ?? $shown;
	}

	/**
	 * Stores an original. The newest entry wins, because its text is about to be shown.
	 *
	 * @param string $shown   Text as shown.
	 * @param string $english English original.
	 */
	private static function remember( string $shown, string $english ): void {
		if ( $shown !== $english ) {
			self::$english[ $shown ] = $english;
		} else {
			unset( self::$english[ $shown ] );
		}
	}
}
