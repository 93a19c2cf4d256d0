<?php
/**
 * The English of what is shown translated.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * A failure is shown in the language of its reader, and the audit log records it in English:
 * a record must not depend on who caused it. WordPress hands out the translation alone, so this
 * class remembers what each text was translated from. On a site in English it remembers nothing.
 *
 * Sentences of the extension (`Native\Exception`) are English with a stable code, and stay so.
 */
final class Sentence {

	/** @var array<string, string> English by what is shown; only where the two differ. */
	private static array $english = [];

	/** Listens to the translations of this plugin. */
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
	}

	/**
	 * A sentence with values, as `sprintf()` makes it.
	 *
	 * @param string           $template Translated template.
	 * @param string|int|float ...$values Values; some may be sentences themselves.
	 */
	public static function of( string $template, string|int|float ...$values ): string {
		$shown = vsprintf( $template, $values );
		self::remember( $shown, vsprintf( self::english( $template ), array_map( static fn( string|int|float $value ): string|int|float => is_string( $value ) ? self::english( $value ) : $value, $values ) ) );
		return $shown;
	}

	/**
	 * Several in one, as `implode()` makes it.
	 *
	 * @param string       $between   What stands between two.
	 * @param list<string> $sentences Sentences or phrases.
	 */
	public static function join( string $between, array $sentences ): string {
		$shown = implode( $between, $sentences );
		self::remember( $shown, implode( $between, array_map( [ self::class, 'english' ], $sentences ) ) );
		return $shown;
	}

	/**
	 * What was translated; a text that is no translation is its own English.
	 *
	 * @param string $shown As shown.
	 */
	public static function english( string $shown ): string {
		return self::$english[ $shown ] ?? $shown;
	}

	/**
	 * Keeps a pair. The newest counts: it is the one that is about to be used.
	 *
	 * @param string $shown   As shown.
	 * @param string $english As written here.
	 */
	private static function remember( string $shown, string $english ): void {
		if ( $shown !== $english ) {
			self::$english[ $shown ] = $english;
		} else {
			unset( self::$english[ $shown ] );
		}
	}
}
