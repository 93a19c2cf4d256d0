<?php
/**
 * Decides which runs and bundles a caller may see.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Host\ArtifactsRoot;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Exception;
use WPCodebox\Native\Runs;

defined( 'ABSPATH' ) || exit;

/**
 * The operator and reviewers see all runs and bundles of the site, other users those that they asked for. Everything that a
 * user without the review capability can reach gets its runs and bundles here. An object of another user gives the same error as one that
 * does not exist, and only a complete id finds a bundle: a search by prefix would reveal which bundles of other users exist.
 */
final class Access {

	private const RUN    = '/^run_[0-9a-f]{32}$/D';
	private const BUNDLE = '/^(run_[0-9a-f]{32}|artifact-bundle-sha256-[0-9a-f]{64})$/D';
	private const PREFIX = '/^[0-9a-z_]{1,36}$/D';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param ExtensionGate $gate         Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site         Site the plugin runs on.
	 * @param ArtifactsRoot $root         Directory of the bundles.
	 * @param Capabilities  $capabilities Permission checks of the user.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site,
		private readonly ArtifactsRoot $root,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Checks whether the caller sees all runs and bundles of the site.
	 *
	 * @param Authority $authority User or operator the call runs as.
	 */
	public function sees_all( Authority $authority ): bool {
		return Authority::Operator === $authority || $this->capabilities->allows( Capabilities::REVIEW );
	}

	/**
	 * Returns the reference with which the extension finds a run, if the caller may see the run.
	 *
	 * @param string    $reference Run id, or a prefix of one.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_run_not_found` for a run that does not exist or belongs to another user.
	 */
	public function run( string $reference, Authority $authority ): string {
		$this->gate->check();
		if ( $this->sees_all( $authority ) ) {
			return $reference;
		}
		if ( 1 !== preg_match( self::RUN, $reference ) ) {
			return $this->own_run( $reference );
		}
		try {
			$view = Runs::get( $this->site->id(), $reference );
		} catch ( Exception $exception ) {
			if ( ErrorCode::RunNotFound->value !== $exception->errorCode ) {
				throw $exception;
			}
			throw $this->no_run( $reference );
		}
		if ( ! $this->is_own_run( $view ) ) {
			throw $this->no_run( $reference );
		}
		return $reference;
	}

	/**
	 * Returns a page of the runs that the current user started, newest first.
	 *
	 * @param array<string, mixed> $filter Filter with `status`, `prefix`, `limit`, `offset`.
	 * @return array<string, mixed> List with `total` and `runs`.
	 */
	public function own_runs( array $filter ): array {
		$this->gate->check();
		$user = get_current_user_id();
		if ( 0 === $user ) {
			return [
				'total' => 0,
				'runs'  => [],
			];
		}
		// Without `unreadable`: it is unknown whose runs these are, so only callers who see all runs see them.
		return array_diff_key( Runs::list( $this->site->id(), [ 'requester' => $user ] + $filter ), [ 'unreadable' => true ] );
	}

	/**
	 * Returns a bundle of this site, if the caller may see it. A user without the review capability gives a complete id.
	 *
	 * @param string    $reference Artifact id, run id, or a unique prefix of either.
	 * @param Authority $authority User or operator the call runs as.
	 * @return array<string, mixed> Bundle as the extension returns it.
	 * @throws Failure   `wp_codebox_artifact_id_missing`, `wp_codebox_artifact_not_found`.
	 * @throws Exception When no bundle or several match, for a caller who sees all bundles.
	 */
	public function bundle( string $reference, Authority $authority ): array {
		$this->gate->check();
		$reference = trim( $reference );
		if ( '' === $reference ) {
			throw Failure::because( ErrorCode::ArtifactIdMissing, __( 'No artifact was named; give its artifact id, its run id, or the beginning of either.', 'codebox' ) );
		}
		$partition = $this->root->partition( [ 'artifact_id' => $reference ] );
		if ( $this->sees_all( $authority ) ) {
			return Artifacts::get( $partition, $reference );
		}
		$found = null;
		if ( 1 === preg_match( self::BUNDLE, $reference ) ) {
			try {
				$found = Artifacts::get( $partition, $reference );
			} catch ( Exception ) {
				// Several bundles may match, also of other users with the same change: the error must not reveal them.
				$found = null;
			}
		}
		if ( null === $found || ! $this->is_own_bundle( $found ) ) {
			/* translators: %s: id as given. */
			throw Failure::because( ErrorCode::ArtifactNotFound, Sentence::of( __( 'You have no bundle with the id "%s"; give the complete id of one of your runs, as wp-codebox/list-runs shows it.', 'codebox' ), $reference ) );
		}
		return $found;
	}

	/**
	 * Checks whether the current user asked for a bundle.
	 *
	 * @param array<string, mixed> $bundle Bundle as the extension returns it.
	 */
	public function is_own_bundle( array $bundle ): bool {
		return Requester::is_user_of( $bundle['metadata']['provenance']['requester'] ?? null, get_current_user_id(), $this->site );
	}

	/**
	 * Checks whether the current user started a run.
	 *
	 * @param array<string, mixed> $view `wp-codebox/run/v1`, read from the records of this site.
	 */
	private function is_own_run( array $view ): bool {
		return Requester::is_user( $view['provenance']['requester'] ?? null, get_current_user_id() );
	}

	/**
	 * Returns the id of the caller's only run whose id starts with a prefix. A search in all runs would reveal which runs of
	 * other users exist.
	 *
	 * @param string $reference Prefix of a run id.
	 * @throws Failure When no run or several runs of the caller have the prefix.
	 */
	private function own_run( string $reference ): string {
		$found = 1 === preg_match( self::PREFIX, $reference ) ? $this->own_runs(
			[
				'prefix' => $reference,
				'limit'  => 1,
			]
		) : [ 'total' => 0 ];
		if ( 0 === $found['total'] ) {
			throw $this->no_run( $reference );
		}
		if ( $found['total'] > 1 ) {
			/* translators: 1: beginning of a run id, 2: number of runs. */
			throw Failure::because( ErrorCode::RunAmbiguous, Sentence::of( __( '"%1$s" matches %2$d of your runs; give more of the run id.', 'codebox' ), $reference, $found['total'] ) );
		}
		return (string) $found['runs'][0]['run_id'];
	}

	/**
	 * Builds the error for a run that does not exist.
	 *
	 * @param string $reference Reference as the caller gave it.
	 */
	private function no_run( string $reference ): Failure {
		/* translators: %s: run id as given. */
		return Failure::because( ErrorCode::RunNotFound, Sentence::of( __( 'There is no run "%s"; list the runs to see which there are.', 'codebox' ), $reference ) );
	}
}
