<?php
/**
 * Parses the approval flags of a bundle decision.
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
 * Reads the approval flags shared by all bundle decisions, and the files that these flags name.
 */
final class Approval {

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param Services $services Service objects of the plugin.
	 */
	public function __construct( private readonly Services $services ) {}

	/**
	 * Converts the flags of apply, preflight-apply, review or stage-apply to the input of the ability that the command calls.
	 *
	 * @param list<string>         $args  Positional arguments: the bundle id, or none.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function input( array $args, array $flags ): array {
		$input = JsonInput::artifact( $args, $flags );
		if ( isset( $flags['approved-files'] ) && ! empty( $flags['all'] ) ) {
			throw Failure::invalid_input( __( 'Both --approved-files and --all are given; give one of them.', 'codebox' ) );
		}
		if ( ! empty( $flags['all'] ) ) {
			$input['approved_files'] = array_column( ArtifactService::changed_files( $this->services->artifacts->artifact( $input ) ), 'path' );
		} elseif ( isset( $flags['approved-files'] ) || ! isset( $input['approved_files'] ) ) {
			$input['approved_files'] = $this->paths( $input, FlagList::split( '--approved-files', (string) ( $flags['approved-files'] ?? '' ) ) );
		}
		$input = FlagList::texts( $flags, [ 'approver', 'manifest-sha256' ] ) + $input;
		if ( isset( $flags['apply-target'] ) ) {
			$input['apply_target'] = FlagList::json_object( '--apply-target', (string) $flags['apply-target'] );
		}
		if ( ! empty( $flags['confirm-sensitive'] ) ) {
			$input['confirm_sensitive'] = true;
		}
		if ( ! empty( $flags['confirm-browser-origin'] ) ) {
			$input['confirm_browser_origin'] = true;
		}
		return $input;
	}

	/**
	 * Replaces each path relative to a mount by the full path in the sandbox, when exactly one changed file has that
	 * relative path. Other paths stay unchanged; the ability validates them.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @param list<string>         $paths Paths as the user typed them.
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
