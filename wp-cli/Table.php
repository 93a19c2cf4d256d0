<?php
/**
 * Prints rows in the formats of WP-CLI.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI\Formatter;
use WPCodebox\Failure;
use WPCodebox\PlainText;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Prints rows as `--format` and `--fields` request. An empty list is not an error.
 */
final class Table {

	/** Columns whose values are file names, which are quoted when they contain hidden characters. */
	private const NAMES = [ 'path', 'relativePath', 'target' ];

	/**
	 * Prints rows.
	 *
	 * @param list<array<string, mixed>> $rows   Rows to print.
	 * @param list<string>               $fields Default columns, used without `--fields`.
	 * @param string                     $id     Column printed by `--format=ids`.
	 * @param array<string, mixed>       $flags  Flags of the command.
	 * @throws Failure When `--fields` names a column that does not exist.
	 */
	public function print( array $rows, array $fields, string $id, array $flags ): void {
		$format = (string) ( $flags['format'] ?? 'table' );
		$wanted = isset( $flags['fields'] ) ? array_values( array_filter( array_map( 'trim', explode( ',', (string) $flags['fields'] ) ) ) ) : $fields;
		$known  = [] === $rows ? $fields : array_keys( array_merge( ...$rows ) );
		$wrong  = array_diff( $wanted, $known, $fields );
		if ( [] !== $wrong ) {
			/* translators: 1: name as given, 2: list of names. */
			throw Failure::invalid_input( Sentence::of( __( 'There is no field "%1$s"; available: %2$s.', 'codebox' ), reset( $wrong ), implode( ', ', $known ) ) );
		}
		if ( 'ids' === $format ) {
			// phpcs:ignore WordPress.Security.EscapeOutput -- the output is a terminal, not HTML.
			echo implode( ' ', array_map( static fn( array $row ): string => self::text( $id, (string) ( $row[ $id ] ?? '' ) ), $rows ) );
			return;
		}
		$shown = array_map( static fn( array $row ): array => self::cells( $row, $wanted, $format ), $rows );
		$args  = [ 'format' => $format ];
		$print = static fn() => ( new Formatter( $args, $wanted ) )->display_items( $shown );
		if ( in_array( $format, [ 'json', 'yaml' ], true ) ) {
			Console::echoed( $format, $print );
		} else {
			// Not captured: WP-CLI writes CSV to STDOUT directly, past output buffers. The cells are already plain text.
			$print();
		}
	}

	/**
	 * Returns a row with every requested column. In formats other than json and yaml, nested values become text.
	 *
	 * @param array<string, mixed> $row    Row to read.
	 * @param list<string>         $wanted Requested columns.
	 * @param string               $format Output format.
	 * @return array<string, mixed>
	 */
	private static function cells( array $row, array $wanted, string $format ): array {
		$cells = [];
		foreach ( $wanted as $field ) {
			$value = $row[ $field ] ?? '';
			if ( ! in_array( $format, [ 'json', 'yaml' ], true ) ) {
				$text  = is_scalar( $value ) ? ( is_bool( $value ) ? ( $value ? 'true' : 'false' ) : (string) $value ) : (string) wp_json_encode( $value, JSON_UNESCAPED_SLASHES );
				$value = self::text( $field, $text );
			}
			$cells[ $field ] = $value;
		}
		return $cells;
	}

	/**
	 * Returns a cell as one line of text.
	 *
	 * @param string $field Name of the column.
	 * @param string $text  Text of the cell.
	 */
	private static function text( string $field, string $text ): string {
		return in_array( $field, self::NAMES, true ) ? PlainText::file_name( $text ) : str_replace( "\n", ' ', PlainText::of( $text ) );
	}
}
