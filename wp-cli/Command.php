<?php
/**
 * What all commands share.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * Wires a command and prints its answer as `--format`, `--fields` and `--porcelain` ask.
 */
abstract class Command {

	/**
	 * Wires the command.
	 *
	 * @param Boundary $boundary Border to the shell.
	 * @param Console  $console  Talk.
	 * @param Table    $table    Rows.
	 * @param Services $services The work.
	 */
	final public function __construct(
		protected readonly Boundary $boundary,
		protected readonly Console $console,
		protected readonly Table $table,
		protected readonly Services $services
	) {}

	/**
	 * Prints rows; as JSON or YAML the whole document, unless `--fields` names columns.
	 *
	 * @param array<string, mixed>       $document The whole document.
	 * @param list<array<string, mixed>> $rows     Its rows.
	 * @param list<string>               $columns  Columns when `--fields` names none.
	 * @param string                     $id       Column that `ids` prints.
	 * @param array<string, mixed>       $flags    Flags.
	 */
	protected function rows( array $document, array $rows, array $columns, string $id, array $flags ): void {
		if ( isset( $flags['fields'] ) ) {
			$this->table->print( $rows, $columns, $id, $flags );
		} else {
			$this->document( $document, $rows, $columns, $id, $flags );
		}
	}

	/**
	 * Prints a document as JSON or YAML; in the other formats its rows.
	 *
	 * @param array<string, mixed>       $document The document.
	 * @param list<array<string, mixed>> $rows     Its rows.
	 * @param list<string>               $columns  Columns when `--fields` names none.
	 * @param string                     $id       Column that `ids` prints.
	 * @param array<string, mixed>       $flags    Flags.
	 */
	protected function document( array $document, array $rows, array $columns, string $id, array $flags ): void {
		if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) ) {
			$this->console->document( $document, $flags['format'] );
		} else {
			$this->table->print( $rows, $columns, $id, $flags );
		}
	}

	/**
	 * Prints a document as JSON or YAML; in the other formats rows about files.
	 *
	 * @param array<string, mixed>       $document The document.
	 * @param list<array<string, mixed>> $files    Changed files, or only their paths.
	 * @param array<string, mixed>       $flags    Flags.
	 */
	protected function files( array $document, array $files, array $flags ): void {
		$columns = isset( $files[0]['status'] ) ? [ 'status', 'path', 'insertions', 'deletions' ] : [ 'path' ];
		$this->document( $document, $files, $columns, 'path', $flags );
	}

	/**
	 * Prints an answer that is one row; for scripts only one line.
	 *
	 * @param array<string, mixed> $answer    The answer.
	 * @param list<string>         $columns   Columns when `--fields` names none.
	 * @param string               $porcelain What scripts get.
	 * @param array<string, mixed> $flags     Flags.
	 */
	protected function row( array $answer, array $columns, string $porcelain, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) ) {
			fwrite( STDOUT, Console::plain( $porcelain ) . "\n" );
		} else {
			$this->document( $answer, [ $answer ], $columns, 'run_id', $flags );
		}
	}
}
