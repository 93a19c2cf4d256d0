<?php
/**
 * Files of a bundle, in and out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Apply\ArtifactService;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * Prints rows about files, and reads the paths people name.
 */
final class ArtifactView {

	/**
	 * Wires the view.
	 *
	 * @param Console  $console  Talk.
	 * @param Table    $table    Rows.
	 * @param Services $services The work.
	 */
	public function __construct(
		private readonly Console $console,
		private readonly Table $table,
		private readonly Services $services
	) {}

	/**
	 * Full paths for paths relative to the mount, where exactly one fits; others stay as
	 * they are and are judged as they are.
	 *
	 * @param array<string, mixed> $input `artifact_id`.
	 * @param list<string>         $paths As given.
	 * @return list<string>
	 */
	public function paths( array $input, array $paths ): array {
		$entries = null;
		foreach ( $paths as $index => $path ) {
			if ( str_starts_with( $path, '/' ) ) {
				continue;
			}
			$entries ??= ArtifactService::changed_files( $this->services->artifacts->artifact( $input ) );
			$fitting   = array_keys( array_column( $entries, 'relativePath', 'path' ), $path, true );
			if ( 1 === count( $fitting ) ) {
				$paths[ $index ] = (string) $fitting[0];
			}
		}
		return $paths;
	}

	/**
	 * Prints what a command came to: one line for scripts, the document, or one row.
	 *
	 * @param array<string, mixed> $answer    The envelope.
	 * @param list<string>         $columns   Columns of the row.
	 * @param string               $porcelain What scripts get.
	 * @param array<string, mixed> $flags     Flags.
	 */
	public function row( array $answer, array $columns, string $porcelain, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) ) {
			fwrite( STDOUT, Console::plain( $porcelain ) . "\n" );
		} elseif ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) ) {
			$this->console->document( $answer, $flags['format'] );
		} else {
			$this->table->print( [ $answer ], $columns, 'run_id', $flags );
		}
	}

	/**
	 * Prints a document, or rows about files.
	 *
	 * @param array<string, mixed>       $answer The envelope.
	 * @param list<array<string, mixed>> $rows   Rows.
	 * @param array<string, mixed>       $flags  Flags.
	 */
	public function files( array $answer, array $rows, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) ) {
			fwrite( STDOUT, $answer['patch_sha256'] . "\n" );
		} elseif ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) ) {
			$this->console->document( $answer, $flags['format'] );
		} else {
			$columns = isset( $rows[0]['status'] ) ? [ 'status', 'path', 'insertions', 'deletions' ] : [ 'path' ];
			$this->table->print( $rows, $columns, 'path', $flags );
		}
	}
}
