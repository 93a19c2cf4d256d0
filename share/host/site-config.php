<?php
/**
 * Database settings of a WordPress site, read from the text of its wp-config.php.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Host;

/**
 * Constants and table prefix of a site.
 */
final class Site_Config {

	/** Size limit of wp-config.php, in bytes. */
	private const BYTES = 1048576;

	/**
	 * Creates the object.
	 *
	 * @param string                     $content   Directory wp-content.
	 * @param string                     $prefix    Prefix of the tables.
	 * @param array<string, string|null> $constants Values by name; null when the file computes the value.
	 */
	private function __construct( public readonly string $content, public readonly string $prefix, private readonly array $constants ) {}

	/**
	 * Reads the settings of a site.
	 *
	 * @param string $wordpress Directory of WordPress. The file may also be in its parent directory.
	 * @throws \RuntimeException When the file cannot be read or does not state the settings.
	 */
	public static function read( string $wordpress ): self {
		$above = dirname( $wordpress );
		$file  = "$wordpress/wp-config.php";
		if ( ! is_file( $file ) && ! is_file( "$above/wp-settings.php" ) ) {
			$file = "$above/wp-config.php";
		}
		if ( ! is_file( $file ) || ! is_readable( $file ) || filesize( $file ) > self::BYTES ) {
			throw new \RuntimeException( 'its wp-config.php cannot be read' );
		}
		$tokens = array_values( array_filter( token_get_all( (string) file_get_contents( $file ) ), static fn ( $token ): bool => ! is_array( $token ) || ! in_array( $token[0], array( T_WHITESPACE, T_COMMENT, T_DOC_COMMENT ), true ) ) );
		$texts  = array_map( static fn ( $token ): string => is_array( $token ) ? $token[1] : $token, $tokens );
		$found  = array();
		$prefix = 'wp_';
		foreach ( $texts as $at => $text ) {
			if ( 'define' === strtolower( ltrim( $text, '\\' ) ) && '(' === ( $texts[ $at + 1 ] ?? '' ) && ',' === ( $texts[ $at + 3 ] ?? '' ) ) {
				$name = self::literal( $texts[ $at + 2 ] );
				if ( null !== $name && ! array_key_exists( $name, $found ) ) {
					$found[ $name ] = ')' === ( $texts[ $at + 5 ] ?? '' ) ? self::literal( $texts[ $at + 4 ] ) : self::joined( $file, array_slice( $texts, $at + 4, 4 ) );
				}
			}
			if ( '$table_prefix' === $text && '=' === ( $texts[ $at + 1 ] ?? '' ) ) {
				$prefix = ';' === ( $texts[ $at + 3 ] ?? '' ) ? self::literal( $texts[ $at + 2 ] ) : null;
			}
		}
		if ( null === $prefix || 1 !== preg_match( '/^[A-Za-z0-9_]+$/D', $prefix ) ) {
			throw new \RuntimeException( 'its wp-config.php computes $table_prefix, and code of the site is not run to find it' );
		}
		return new self( rtrim( $found['WP_CONTENT_DIR'] ?? "$wordpress/wp-content", '/' ), $prefix, $found );
	}

	/**
	 * Returns the value of a constant, or the default when the file does not define it.
	 *
	 * @param string      $name     Name of the constant.
	 * @param string|null $fallback Default; null when there is none.
	 * @throws \RuntimeException When the file computes the value, or does not define a required constant.
	 */
	public function constant( string $name, ?string $fallback = null ): string {
		$value = array_key_exists( $name, $this->constants ) ? $this->constants[ $name ] : $fallback;
		return $value ?? throw new \RuntimeException( "its wp-config.php does not state $name as plain text, and code of the site is not run to find it" );
	}

	/**
	 * Returns the value of a string literal; null when the token is no string literal.
	 *
	 * @param string $token Text of a token.
	 */
	private static function literal( string $token ): ?string {
		if ( 1 === preg_match( "/^'((?:[^'\\\\]|\\\\.)*)'$/Ds", $token, $found ) ) {
			return str_replace( array( "\\'", '\\\\' ), array( "'", '\\' ), $found[1] );
		}
		return 1 === preg_match( '/^"([^"\\\\$]*)"$/D', $token, $found ) ? $found[1] : null;
	}

	/**
	 * Returns the value of `__DIR__ . 'text'`; null for any other expression.
	 *
	 * @param string       $file  File that contains it.
	 * @param list<string> $texts Texts of the tokens.
	 */
	private static function joined( string $file, array $texts ): ?string {
		$end = self::literal( $texts[2] ?? '' );
		return '__DIR__' === strtoupper( $texts[0] ) && '.' === ( $texts[1] ?? '' ) && ')' === ( $texts[3] ?? '' ) && null !== $end ? dirname( $file ) . $end : null;
	}
}
