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
 * Reads the flags that all decisions about a bundle share.
 */
final class Approval {

	/**
	 * Wires the reader.
	 *
	 * @param ArtifactView $view     Files of a bundle.
	 * @param Services     $services The work.
	 */
	public function __construct(
		private readonly ArtifactView $view,
		private readonly Services $services
	) {}

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
			$input['approved_files'] = $this->view->paths( $input, FlagList::split( '--approved-files', (string) ( $flags['approved-files'] ?? '' ) ) );
		}
		foreach ( [
			'approver'        => 'approver',
			'manifest-sha256' => 'manifest_sha256',
		] as $flag => $field ) {
			if ( isset( $flags[ $flag ] ) ) {
				$input[ $field ] = (string) $flags[ $flag ];
			}
		}
		if ( isset( $flags['apply-target'] ) ) {
			$input['apply_target'] = FlagList::json_object( '--apply-target', (string) $flags['apply-target'] );
		}
		return $input;
	}
}
