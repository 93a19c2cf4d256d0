<?php
/**
 * What a command says, apart from its data.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Talk, progress and errors go to STDERR, so that STDOUT is data only. Text from a
 * guest or a bundle is printed without control and invisible characters: it must not drive a
 * terminal, nor look like another text.
 */
final class Console {

	// The list of HIDDEN in the runner's output.rs, as a class of PCRE; a test compares them.
	private const HIDDEN = '/[\x00-\x08\x0B-\x1F\x7F-\x{9F}\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}'
		. '\x{2028}-\x{202E}\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFFB}\x{1BCA0}-\x{1BCA3}\x{1D173}-\x{1D17A}\x{E0000}-\x{E0FFF}]/u';

	/** What git writes for some characters of a quoted name. */
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
	 * One line of talk; silent with `--quiet`.
	 *
	 * @param string $line The line.
	 */
	public function say( string $line ): void {
		if ( ! WP_CLI::get_config( 'quiet' ) ) {
			fwrite( STDERR, self::plain( $line ) . "\n" );
		}
	}

	/**
	 * One line that is shown with `--quiet` too.
	 *
	 * @param string $line The line.
	 */
	public function warn( string $line ): void {
		fwrite( STDERR, 'Warning: ' . self::plain( $line ) . "\n" );
	}

	/**
	 * An error: sentence, code, hints. Shown with `--quiet` too.
	 *
	 * @param Failure $failure What went wrong.
	 */
	public function error( Failure $failure ): void {
		$lines = [ sprintf( 'Error: %s (%s)', $failure->getMessage(), $failure->error_code ) ];
		foreach ( $failure->hints as $hint ) {
			$lines[] = '  - ' . $hint;
		}
		fwrite( STDERR, self::plain( implode( "\n", $lines ) ) . "\n" );
	}

	/**
	 * Bytes of data as they are. On a terminal, hidden characters are taken out.
	 *
	 * @param string $bytes The data.
	 */
	public function data( string $bytes ): void {
		fwrite( STDOUT, stream_isatty( STDOUT ) ? self::plain( $bytes ) : $bytes );
	}

	/**
	 * A document as JSON, in every format that is no table.
	 *
	 * @param array<string, mixed> $document The document.
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
	 * A value as JSON and a line end. On a terminal, hidden characters are escaped.
	 *
	 * @param array<string, mixed> $value The value.
	 * @param int                  $flags More flags of `json_encode()`.
	 */
	public function json( array $value, int $flags = 0 ): void {
		$json = (string) wp_json_encode( $value, $flags | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE );
		fwrite( STDOUT, ( stream_isatty( STDOUT ) ? self::escaped( $json ) : $json ) . "\n" );
	}

	/**
	 * Prints what WP-CLI echoes in a format. On a terminal, hidden characters are escaped in JSON and
	 * taken out of everything else.
	 *
	 * @param string   $format `json` or another format.
	 * @param callable $output Echoes it.
	 */
	public static function echoed( string $format, callable $output ): void {
		if ( ! stream_isatty( STDOUT ) ) {
			$output();
			return;
		}
		ob_start();
		$output();
		$text = (string) ob_get_clean();
		// phpcs:ignore WordPress.Security.EscapeOutput -- a terminal.
		echo 'json' === $format ? self::escaped( $text ) : self::plain( $text );
	}

	/**
	 * JSON with its hidden characters escaped; it has them in strings only.
	 *
	 * @param string $json JSON in UTF-8.
	 */
	public static function escaped( string $json ): string {
		return (string) preg_replace_callback(
			self::HIDDEN,
			// Above U+FFFF these are two surrogates.
			static fn( array $found ): string => '\u' . implode( '\u', str_split( bin2hex( (string) mb_convert_encoding( $found[0], 'UTF-16BE', 'UTF-8' ) ), 4 ) ),
			$json
		);
	}

	/**
	 * The name of a file in a line, in pipes too: as git quotes it where a character of it is hidden,
	 * a quote or a backslash, so that one row is one name.
	 *
	 * @param string $path As the runner names it.
	 */
	public static function name( string $path ): string {
		$path = mb_convert_encoding( $path, 'UTF-8', 'UTF-8' );
		$odd  = false !== strpbrk( $path, "\"\\\n\t" ) || 1 === preg_match( self::HIDDEN, $path );
		// A guest path that is not UTF-8 is quoted as a whole already.
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
	 * The text in valid UTF-8, without hidden characters.
	 *
	 * @param string $text Any text.
	 */
	public static function plain( string $text ): string {
		$valid = mb_convert_encoding( $text, 'UTF-8', 'UTF-8' );
		return (string) preg_replace( self::HIDDEN, '', $valid );
	}
}
