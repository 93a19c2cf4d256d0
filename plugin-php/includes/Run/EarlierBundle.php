<?php
/**
 * Earlier bundle that a task continues.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Exception;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A run that continues a bundle shows the bundle's change, so the caller must be allowed to see that bundle: reviewers
 * and the operator see all bundles of the site, other users those of their own runs. A bundle of another user gives the
 * same error as one that does not exist. The runner checks everything else.
 */
final class EarlierBundle {

	/** Pattern of a complete id. A prefix is refused: its error would reveal which bundles of other users exist. */
	private const COMPLETE = '/^(run_[0-9a-f]{32}|artifact-bundle-sha256-[0-9a-f]{64})$/D';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Site      $site   Site the plugin runs on.
	 * @param RunAccess $access Decides which runs a user may see.
	 */
	public function __construct(
		private readonly Site $site,
		private readonly RunAccess $access
	) {}

	/**
	 * Returns the field `follow_up_of` for the run request, with the run id of the bundle.
	 *
	 * @param array<string, mixed> $input     Task input that the extension validated.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array{follow_up_of?: array<string, mixed>}
	 * @throws Failure|Exception When there is no such bundle, or the caller may not see it.
	 */
	public function field( array $input, Authority $authority ): array {
		$given = (array) ( $input['follow_up_of'] ?? [] );
		if ( [] === $given ) {
			return [];
		}
		$reference = trim( (string) ( $given['run_id'] ?? $given['artifact_id'] ?? '' ) );
		$run_id    = $this->access->sees_all( $authority ) ? $this->bundle( $reference )['run_id'] : $this->own( $reference );
		return [ 'follow_up_of' => [ 'run_id' => (string) $run_id ] + array_intersect_key( $given, [ 'comments' => true ] ) ];
	}

	/**
	 * Reads a bundle of this site.
	 *
	 * @param string $reference Artifact id, run id, or a unique prefix of either.
	 * @return array<string, mixed>
	 * @throws Exception When no bundle or several match.
	 */
	private function bundle( string $reference ): array {
		return Artifacts::get( $this->site->id(), $reference );
	}

	/**
	 * Returns the run id of a bundle that the current user's run made.
	 *
	 * @param string $reference Complete artifact id or run id.
	 * @throws Failure `wp_codebox_artifact_not_found`.
	 */
	private function own( string $reference ): string {
		$found = null;
		if ( 1 === preg_match( self::COMPLETE, $reference ) ) {
			try {
				$found = $this->bundle( $reference );
			} catch ( Exception ) {
				// Several bundles may match, also of other users with the same change: the error must not reveal them.
				$found = null;
			}
		}
		if ( null === $found || ! $this->access->owns( (array) ( $found['metadata'] ?? [] ) ) ) {
			/* translators: %s: id as given. */
			throw Failure::because( ErrorCode::ArtifactNotFound, Sentence::of( __( 'You have no bundle with the id "%s"; give the complete id of one of your runs, as wp-codebox/list-runs shows it.', 'codebox' ), $reference ) );
		}
		return (string) $found['run_id'];
	}
}
