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
use WPCodebox\PlainText;

defined( 'ABSPATH' ) || exit;

/**
 * Messages, progress and errors go to STDERR, so STDOUT holds data only. Control and invisible characters are
 * removed from text of a guest or a bundle: such text must not control the terminal or imitate other text.
 */
final class Console {

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
		fwrite( STDOUT, PlainText::of( $text ) . "\n" );
	}

	/**
	 * Writes data bytes unchanged. On a terminal, hidden characters are removed.
	 *
	 * @param string $bytes Bytes to write.
	 */
	public function data( string $bytes ): void {
		fwrite( STDOUT, stream_isatty( STDOUT ) ? PlainText::of( $bytes ) : $bytes );
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
		fwrite( STDOUT, PlainText::json( $json ) . "\n" );
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
		echo 'json' === $format ? PlainText::json( $text ) : PlainText::of( $text );
	}

	/**
	 * Returns the text without hidden characters, and with every line but the first indented, so that a text
	 * of a guest cannot imitate a message.
	 *
	 * @param string $text Any text.
	 */
	private static function paragraph( string $text ): string {
		return str_replace( "\n", "\n  ", PlainText::of( rtrim( $text, "\n" ) ) );
	}
}
