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
 * guest or a bundle is printed without control characters: it must not drive a terminal.
 */
final class Console {

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
	 * Bytes of data as they are. On a terminal, control characters are taken out.
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
			WP_CLI::print_value( $document, [ 'format' => 'yaml' ] );
			return;
		}
		fwrite( STDOUT, (string) wp_json_encode( $document, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE ) . "\n" );
	}

	/**
	 * The text without control characters other than newline and tab, and valid UTF-8.
	 *
	 * @param string $text Any text.
	 */
	public static function plain( string $text ): string {
		$valid = mb_convert_encoding( $text, 'UTF-8', 'UTF-8' );
		return (string) preg_replace( '/[\x00-\x08\x0B-\x1F\x7F\x{80}-\x{9F}\x{202A}-\x{202E}\x{2066}-\x{2069}]/u', '', $valid );
	}
}
