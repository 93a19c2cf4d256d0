<?php
/**
 * Replays the run of a bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Replay;

use Throwable;
use WPCodebox\Access;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleRecord;
use WPCodebox\Apply\BundleTrust;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Run\RunService;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Runs the same task, agent, checks, limits and policy in a new sandbox against this site's current code, and
 * reports the differences. The bundle decides which programs run and which hosts they reach, so it must
 * verify and be signed by a trusted key.
 */
final class ReplayService {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate   $gate       Check that the PHP extension is loaded and its version fits.
	 * @param ArtifactService $artifacts  Reader of the artifact bundles.
	 * @param BundleTrust     $trust      Signing keys that this site trusts.
	 * @param ReplayPlan      $plan       Rebuilds the task of a bundle.
	 * @param Comparison      $comparison Compares two runs.
	 * @param RunService      $runs       Runs tasks.
	 * @param Access          $access     Decides which bundles a caller may see.
	 * @param AuditTrail      $audit      Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ArtifactService $artifacts,
		private readonly BundleTrust $trust,
		private readonly ReplayPlan $plan,
		private readonly Comparison $comparison,
		private readonly RunService $runs,
		private readonly Access $access,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Replays the run of a bundle, or compares it with an ended replay.
	 *
	 * @param array<string, mixed>          $input      `artifact_id`, `apply_target?`, `replay_run_id?`.
	 * @param Authority                     $authority  User or operator the call runs as.
	 * @param (callable(object): void)|null $on_started Called with the run handle as soon as the run exists.
	 * @param (callable(array): mixed)|null $on_event   Called with each lifecycle event; returning false
	 *   cancels the run.
	 * @return array<string, mixed> `wp-codebox/artifact-replay/v1`.
	 */
	public function replay( array $input, Authority $authority, ?callable $on_started = null, ?callable $on_event = null ): array {
		$this->gate->check();
		$record = [ 'artifact_id' => (string) ( $input['artifact_id'] ?? '' ) ];
		try {
			$original = BundleRecord::present( $this->access->bundle( $record['artifact_id'], $authority ) );
			$record   = array_intersect_key( $original, array_flip( [ 'artifact_id', 'run_id' ] ) );
			$mounts   = $this->mounts( $original );
			$task     = $this->plan->input( $original, $mounts, (array) ( $input['apply_target'] ?? [] ), $authority );
			$baseline = $this->comparison->baseline( $original, array_column( $task['mounts'], 'source', 'target' ) );
			if ( empty( $input['replay_run_id'] ) ) {
				$this->audit->write( 'replay', $record + [ 'status' => 'started' ] );
				$run = $this->run( $task, $authority, $on_started, $on_event );
				if ( 'wp-codebox/run-handle/v1' === $run['schema'] ) {
					return $this->running( $original, $run );
				}
				if ( empty( $run['artifact_id'] ) ) {
					/* translators: %s: how the run ended. */
					throw Failure::because( ErrorCode::ReplayUnavailable, Sentence::of( __( 'The replay made no bundle that could be compared with the one of the original run; it ended with: %s', 'codebox' ), (string) ( $run['summary'] ?? $run['run']['outcome'] ) ) );
				}
				$run_id = (string) $run['run']['run_id'];
			} else {
				$run_id = (string) $input['replay_run_id'];
			}
			$replay = $this->repetition( $run_id, $original, $authority );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'replay', $record, $thrown );
		}
		$differences = array_merge( $baseline['differences'], $this->comparison->differences( $original, $replay ) );
		$audit       = $this->audit->write(
			'replay',
			$record + [
				'status' => 'success',
				'result' => [
					'run_id'      => (string) $replay['run_id'],
					'differences' => count( $differences ),
				],
			]
		);
		return [
			'success'     => true,
			'schema'      => 'wp-codebox/artifact-replay/v1',
			'status'      => 'compared',
			'identical'   => [] === $differences,
			'differences' => $differences,
			'notes'       => $baseline['notes'],
			'original'    => $this->summary( $original ),
			'replay'      => $this->summary( $replay ),
			'audit'       => ArtifactService::audit_reference( $audit ),
		];
	}

	/**
	 * Returns the mounts of a bundle after checking that it verifies and is trusted.
	 *
	 * @param array<string, mixed> $artifact Artifact bundle.
	 * @return list<array<string, mixed>>
	 * @throws Failure `wp_codebox_artifact_verification_failed`, `wp_codebox_artifact_untrusted`.
	 */
	private function mounts( array $artifact ): array {
		$verification = $this->artifacts->verification( $artifact );
		if ( true !== ( $verification['valid'] ?? false ) ) {
			throw Failure::because(
				ErrorCode::ArtifactVerificationFailed,
				__( 'The verification of the bundle failed, so this site cannot know what ran; look at the violations, and run the task again instead of replaying it.', 'codebox' ),
				[],
				[ 'violations' => $verification['violations'] ?? [] ]
			);
		}
		/* translators: %s: status of its signature, as `unsigned`. */
		$this->trust->assert( (array) ( $verification['signature'] ?? [] ), __( 'The signature of the bundle is %s; only bundles signed by this host or by a trusted key are replayed here.', 'codebox' ) );
		return ArtifactService::mounts( $artifact );
	}

	/**
	 * Runs the task. A caller that follows events waits for the end; an ability waits at most as long as
	 * run-agent-task does. A secret that the site no longer supplies counts as missing.
	 *
	 * @param array<string, mixed>          $task       Task input.
	 * @param Authority                     $authority  User or operator the call runs as.
	 * @param (callable(object): void)|null $on_started Called with the run handle as soon as the run exists.
	 * @param (callable(array): mixed)|null $on_event   Called with each lifecycle event; returning false
	 *   cancels the run.
	 * @return array<string, mixed>
	 */
	private function run( array $task, Authority $authority, ?callable $on_started, ?callable $on_event ): array {
		try {
			// The ability input has no field `commands`; these come from the bundle.
			$commands = $task['commands'] ?? [];
			unset( $task['commands'] );
			return null === $on_event ? $this->runs->answer( $task, $authority, $commands ) : $this->runs->run( $task, $authority, [], $on_started, $on_event, [], $commands );
		} catch ( Failure $failure ) {
			if ( ErrorCode::SecretInvalid->value === $failure->error_code ) {
				/* translators: %s: name of an environment variable. */
				throw ReplayPlan::unavailable( array_map( static fn( string $name ): string => Sentence::of( __( 'the secret %s', 'codebox' ), $name ), $task['secret_env'] ?? [] ) );
			}
			throw $failure;
		}
	}

	/**
	 * Returns the bundle of an ended replay, after checking that it replays the given bundle.
	 *
	 * @param string               $run_id    Run id of the replay.
	 * @param array<string, mixed> $original  Original bundle.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_artifact_not_found`, `wp_codebox_input_invalid`.
	 */
	private function repetition( string $run_id, array $original, Authority $authority ): array {
		$replay = BundleRecord::present( $this->access->bundle( $run_id, $authority ) );
		if ( ( $replay['metadata']['provenance']['metadata']['replay_of'] ?? '' ) !== $original['run_id'] ) {
			throw Failure::invalid_input( __( '"replay_run_id" is not a replay of this bundle; give the run id that replay-artifact returned.', 'codebox' ) );
		}
		return $replay;
	}

	/**
	 * Builds the result of a replay that is still active.
	 *
	 * @param array<string, mixed> $original Original bundle.
	 * @param array<string, mixed> $handle   `wp-codebox/run-handle/v1`.
	 * @return array<string, mixed>
	 */
	private function running( array $original, array $handle ): array {
		return [
			'success'     => true,
			'schema'      => 'wp-codebox/artifact-replay/v1',
			'status'      => 'running',
			'differences' => [],
			'original'    => $this->summary( $original ),
			'replay'      => [ 'run_id' => (string) $handle['run_id'] ],
			'run'         => $handle,
		];
	}

	/**
	 * Returns ids, time, outcome and number of changed files of a bundle.
	 *
	 * @param array<string, mixed> $artifact Artifact bundle.
	 * @return array<string, mixed>
	 */
	private function summary( array $artifact ): array {
		return array_intersect_key( $artifact, array_flip( [ 'artifact_id', 'run_id', 'created_at' ] ) ) + [
			'outcome'       => (string) ( $artifact['metadata']['outcome'] ?? '' ),
			'changed_files' => count( ArtifactService::changed_files( $artifact ) ),
		];
	}
}
