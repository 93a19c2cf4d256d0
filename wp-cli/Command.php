<?php
/**
 * Base class of all commands.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * Prints the result of a command as `--format`, `--fields` and `--porcelain` request.
 */
abstract class Command {

	/**
	 * Creates the command with its dependencies.
	 *
	 * @param Boundary $boundary Runs command bodies with permission checks.
	 * @param Console  $console  Writer for STDERR messages.
	 * @param Table    $table    Table printer.
	 * @param Services $services Service objects of the plugin.
	 */
	final public function __construct(
		protected readonly Boundary $boundary,
		protected readonly Console $console,
		protected readonly Table $table,
		protected readonly Services $services
	) {}

	/**
	 * Prints rows in the format of `--format`. JSON and YAML print the whole document, unless `--fields` names columns.
	 *
	 * @param array<string, mixed>       $document Whole document.
	 * @param list<array<string, mixed>> $rows     Rows of the document.
	 * @param list<string>               $columns  Default columns, used without `--fields`.
	 * @param string                     $id       Column printed by `--format=ids`.
	 * @param array<string, mixed>       $flags    Flags of the command line, by name.
	 */
	protected function rows( array $document, array $rows, array $columns, string $id, array $flags ): void {
		if ( isset( $flags['fields'] ) ) {
			$this->table->print( $rows, $columns, $id, $flags );
		} else {
			$this->document( $document, $rows, $columns, $id, $flags );
		}
	}

	/**
	 * Prints a document as JSON or YAML, or its rows in the other formats.
	 *
	 * @param array<string, mixed>       $document Document to print.
	 * @param list<array<string, mixed>> $rows     Rows of the document.
	 * @param list<string>               $columns  Default columns, used without `--fields`.
	 * @param string                     $id       Column printed by `--format=ids`.
	 * @param array<string, mixed>       $flags    Flags of the command line, by name.
	 */
	protected function document( array $document, array $rows, array $columns, string $id, array $flags ): void {
		if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) ) {
			$this->console->document( $document, $flags['format'] );
		} else {
			$this->table->print( $rows, $columns, $id, $flags );
		}
	}

	/**
	 * Prints a document as JSON or YAML, or one row per file in the other formats.
	 *
	 * @param array<string, mixed>       $document Document to print.
	 * @param list<array<string, mixed>> $files    Changed files, or only their paths.
	 * @param array<string, mixed>       $flags    Flags of the command line, by name.
	 */
	protected function files( array $document, array $files, array $flags ): void {
		$columns = isset( $files[0]['status'] ) ? [ 'status', 'path', 'insertions', 'deletions' ] : [ 'path' ];
		$this->document( $document, $files, $columns, 'path', $flags );
	}

	/**
	 * Prints a result with a single row; with `--porcelain` only one line.
	 *
	 * @param array<string, mixed> $answer    Result to print.
	 * @param list<string>         $columns   Default columns, used without `--fields`.
	 * @param string               $porcelain Line printed with `--porcelain`.
	 * @param array<string, mixed> $flags     Flags of the command line, by name.
	 */
	protected function row( array $answer, array $columns, string $porcelain, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) ) {
			Console::print( $porcelain );
		} else {
			$this->document( $answer, [ $answer ], $columns, 'run_id', $flags );
		}
	}
}
