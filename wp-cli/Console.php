<?php
/**
 * Writes messages and documents of commands to the terminal. `Table` prints rows.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Messages, progress and errors go to STDERR, so STDOUT holds data only. Control and invisible characters are
 * removed from text of a guest or a bundle: such text must not control the terminal or imitate other text.
 */
final class Console {

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
	 * Prints one message line; silent with `--quiet`.
	 *
	 * @param string $line Line without its line end.
	 */
	public function say( string $line ): void {
		if ( ! WP_CLI::get_config( 'quiet' ) ) {
			fwrite( STDERR, self::paragraph( $line ) . "\n" );
		}
	}

	/**
	 * Prints one message line, even with `--quiet`.
	 *
	 * @param string $line Line without its line end.
	 */
	public function warn( string $line ): void {
		fwrite( STDERR, 'Warning: ' . self::paragraph( $line ) . "\n" );
	}

	/**
	 * Prints an error with message, code and hints, even with `--quiet`.
	 *
	 * @param Failure $failure Failure to report.
	 */
	public function error( Failure $failure ): void {
		$lines = [ sprintf( 'Error: %s (%s)', $failure->getMessage(), $failure->error_code ) ];
		foreach ( $failure->hints as $hint ) {
			$lines[] = '  - ' . $hint;
		}
		fwrite( STDERR, implode( "\n", array_map( self::paragraph( ... ), $lines ) ) . "\n" );
	}

	/**
	 * Prints text for people, or an id for scripts, on STDOUT; hidden characters are removed.
	 *
	 * @param string $text Lines without the last line end.
	 */
	public static function print( string $text ): void {
		fwrite( STDOUT, self::plain( $text ) . "\n" );
	}

	/**
	 * Writes data bytes unchanged. On a terminal, hidden characters are removed.
	 *
	 * @param string $bytes Bytes to write.
	 */
	public function data( string $bytes ): void {
		fwrite( STDOUT, stream_isatty( STDOUT ) ? self::plain( $bytes ) : $bytes );
	}

	/**
	 * Prints a document as YAML, or as JSON in every other format.
	 *
	 * @param array<string, mixed> $document Document to print.
	 * @param string               $format   `json` or `yaml`.
	 */
	public function document( array $document, string $format ): void {
		if ( 'yaml' === $format ) {
			self::echoed( 'yaml', static fn() => WP_CLI::print_value( $document, [ 'format' => 'yaml' ] ) );
			return;
		}
		$this->json( $document, JSON_PRETTY_PRINT );
	}

	/**
	 * Prints a value as one JSON text and a newline. Hidden characters are escaped.
	 *
	 * @param array<string, mixed> $value Value to encode.
	 * @param int                  $flags Additional flags of `json_encode()`.
	 */
	public function json( array $value, int $flags = 0 ): void {
		$json = (string) wp_json_encode( $value, $flags | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE );
		fwrite( STDOUT, self::escaped( $json ) . "\n" );
	}

	/**
	 * Captures and prints what a WP-CLI formatter echoes. Hidden characters are escaped in JSON and removed in
	 * every other format.
	 *
	 * @param string   $format `json` or another format.
	 * @param callable $output Echoes the formatted output.
	 */
	public static function echoed( string $format, callable $output ): void {
		ob_start();
		$output();
		$text = (string) ob_get_clean();
		// phpcs:ignore WordPress.Security.EscapeOutput -- the output is a terminal, not HTML.
		echo 'json' === $format ? self::escaped( $text ) : self::plain( $text );
	}

	/**
	 * Returns JSON with hidden characters escaped; in JSON only strings can hold such characters.
	 *
	 * @param string $json JSON text in UTF-8.
	 */
	public static function escaped( string $json ): string {
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
	 * @param string $path Path as the runner reports it.
	 */
	public static function name( string $path ): string {
		$path = mb_convert_encoding( $path, 'UTF-8', 'UTF-8' );
		$odd  = false !== strpbrk( $path, "\"\\\n\t" ) || 1 === preg_match( self::HIDDEN, $path );
		// The runner already quotes a guest path that is not UTF-8.
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

	/**
	 * Returns the text without hidden characters, and with every line but the first indented, so that a text
	 * of a guest cannot imitate a message.
	 *
	 * @param string $text Any text.
	 */
	private static function paragraph( string $text ): string {
		return str_replace( "\n", "\n  ", self::plain( rtrim( $text, "\n" ) ) );
	}

	/**
	 * Returns the text as valid UTF-8 without hidden characters.
	 *
	 * @param string $text Any text.
	 */
	public static function plain( string $text ): string {
		$valid = mb_convert_encoding( $text, 'UTF-8', 'UTF-8' );
		return (string) preg_replace( self::HIDDEN, '', $valid );
	}
}
