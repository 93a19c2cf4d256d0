<?php
/**
 * What was approved, as flags say it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Apply\ArtifactService;
use WPCodebox\Failure;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the flags that all decisions about a bundle share, and the files they name.
 */
final class Approval {

	/**
	 * Wires the reader.
	 *
	 * @param Services $services The work.
	 */
	public function __construct( private readonly Services $services ) {}

	/**
	 * Input of the ability that does the same.
	 *
	 * @param list<string>         $args  Positional arguments: the bundle.
	 * @param array<string, mixed> $flags Flags.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function input( array $args, array $flags ): array {
		$input = [ 'artifact_id' => $args[0] ];
		if ( isset( $flags['approved-files'] ) && ! empty( $flags['all'] ) ) {
			throw Failure::invalid_input( __( 'Both --approved-files and --all are given; give one of them.', 'codebox' ) );
		}
		if ( ! empty( $flags['all'] ) ) {
			$input['approved_files'] = array_column( ArtifactService::changed_files( $this->services->artifacts->artifact( $input ) ), 'path' );
		} else {
			$input['approved_files'] = $this->paths( $input, FlagList::split( '--approved-files', (string) ( $flags['approved-files'] ?? '' ) ) );
		}
		$input += FlagList::texts( $flags, [ 'approver', 'manifest-sha256' ] );
		if ( isset( $flags['apply-target'] ) ) {
			$input['apply_target'] = FlagList::json_object( '--apply-target', (string) $flags['apply-target'] );
		}
		return $input;
	}

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
}
