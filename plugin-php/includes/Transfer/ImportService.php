<?php
/**
 * Imports bundles.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Transfer;

use Throwable;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleRecord;
use WPCodebox\Apply\BundleTrust;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Connector\Authorization;
use WPCodebox\Connector\Scope;
use WPCodebox\Connector\TrustedCallers;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\HostPath;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The extension verifies and copies the bundle; importing the same bundle again changes nothing. An import
 * does not make a bundle trusted: only its signature decides whether it may be applied.
 */
final class ImportService {

	private const IMPORT   = 'import-artifact-bundle';
	private const REIMPORT = 'reimport-artifact-bundle';

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate   $gate      Check that the PHP extension is loaded and its version fits.
	 * @param ArtifactService $artifacts Reader of the artifact bundles.
	 * @param BundleTrust     $trust     Signing keys that this site trusts.
	 * @param HostPath        $paths     Checks paths given by the caller.
	 * @param Site            $site      Site the plugin runs on.
	 * @param AuditTrail      $audit     Audit log that records each decision.
	 * @param TrustedCallers  $callers   Authorizes the caller.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ArtifactService $artifacts,
		private readonly BundleTrust $trust,
		private readonly HostPath $paths,
		private readonly Site $site,
		private readonly AuditTrail $audit,
		private readonly TrustedCallers $callers
	) {}

	/**
	 * Imports a bundle.
	 *
	 * @param array<string, mixed> $input     Ability input with one source; `expected_artifact_id?`,
	 *   `expected_content_digest?`, `replace?`, `metadata?`, `authorization?`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/artifact-result-envelope/v1`.
	 */
	public function import( array $input, Authority $authority ): array {
		return $this->take( self::IMPORT, $input, $authority );
	}

	/**
	 * Imports a bundle again: exactly the one that an id, a reference or an earlier result names. A damaged
	 * copy is replaced.
	 *
	 * @param array<string, mixed> $input     Input of an import; `artifact_id?`, `artifact_ref?`,
	 *   `artifact_result?`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/artifact-result-envelope/v1`.
	 */
	public function reimport( array $input, Authority $authority ): array {
		return $this->take( self::REIMPORT, $input, $authority );
	}

	/**
	 * Imports a bundle and records success or failure in the audit log.
	 *
	 * @param string               $operation Name of the operation.
	 * @param array<string, mixed> $input     Input of import or reimport.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	private function take( string $operation, array $input, Authority $authority ): array {
		$this->gate->check();
		$admitted = $this->callers->admitted( Scope::WriteArtifacts, $input['authorization'] ?? null, $input );
		$decision = $admitted->to_array();
		$record   = [
			'operation'     => $operation,
			'authorization' => $decision,
		];
		try {
			$input   = self::REIMPORT === $operation ? $this->named( $input ) : $input;
			$input   = $this->replacing( $input, self::REIMPORT === $operation, $admitted );
			$source  = ImportSource::from( $input, $this->paths, $authority );
			$record += [ 'source' => $source->describe() ];
			$taken   = null === $source->bytes
				? Artifacts::import( $this->site->id(), $source->path, $this->options( $input, $authority ) )
				: Artifacts::importArchive( $this->site->id(), $source->bytes, $this->options( $input, $authority ) );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'import', $record, $thrown );
		}
		$verification = array_diff_key(
			(array) $taken['verification'],
			[
				'manifest'        => 1,
				'bundleDirectory' => 1,
			]
		);
		$signature    = (array) ( $verification['signature'] ?? [ 'status' => 'unsigned' ] );
		$known        = array_intersect_key( $taken, array_flip( [ 'artifact_id', 'run_id', 'manifest_sha256' ] ) );
		$audit        = $this->audit->write(
			'import',
			$record + $known + [
				'status'    => 'success',
				'result'    => [ 'status' => $taken['status'] ],
				'signature' => $signature,
			]
		);
		$artifact     = $this->artifacts->artifact( [ 'artifact_id' => $taken['run_id'] ] );
		$bundle       = BundleRecord::reference( $artifact );
		$envelope     = [
			'success'        => true,
			'schema'         => 'wp-codebox/artifact-result-envelope/v1',
			'operation'      => $operation,
			'status'         => $taken['status'],
			'artifactBundle' => $bundle,
			'artifactRefs'   => [ array_diff_key( $bundle, [ 'digest' => 1 ] ) ],
			'evidenceRefs'   => [],
			'artifact'       => $artifact,
			'verification'   => $verification,
			'result'         => [ 'run_id' => (string) $taken['run_id'] ],
			'diagnostics'    => [],
			'trusted'        => $this->trust->holds( $signature ),
			'source'         => $source->describe(),
			'audit'          => ArtifactService::audit_reference( $audit ),
			'authorization'  => $decision,
		] + $known;
		return empty( $input['metadata'] ) ? $envelope : $envelope + [ 'metadata' => $input['metadata'] ];
	}

	/**
	 * Returns the input with `replace` decided. To replace a stored bundle is to remove it, so it needs the capability of
	 * discard-artifact; the scope of an application password only adds bundles.
	 *
	 * @param array<string, mixed> $input    Input of import or reimport.
	 * @param bool                 $default  Value of `replace` when the caller does not set it.
	 * @param Authorization        $admitted Authenticated caller.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_forbidden`.
	 */
	private function replacing( array $input, bool $default, Authorization $admitted ): array {
		$allowed = 'trusted-orchestrator' !== $admitted->method;
		if ( ! $allowed && ! empty( $input['replace'] ) ) {
			throw Failure::because(
				ErrorCode::Forbidden,
				/* translators: %s: name of a capability. */
				Sentence::of( __( 'Only a user with the capability %s can replace a stored bundle.', 'codebox' ), Capabilities::REVIEW ),
				[ __( 'Leave "replace" out: a bundle that this site does not have yet is added.', 'codebox' ) ]
			);
		}
		return [ 'replace' => $input['replace'] ?? ( $default && $allowed ) ] + $input;
	}

	/**
	 * Returns the import options for the extension: permitted directories, expected ids, whether to replace.
	 *
	 * @param array<string, mixed> $input     Input of an import.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	private function options( array $input, Authority $authority ): array {
		$roots   = $this->site->allowed_roots( $authority );
		$options = [ 'trusted_keys' => $this->trust->keys() ] + ( null === $roots ? [] : [ 'allowed_roots' => $roots ] );
		foreach ( [ 'expected_artifact_id', 'expected_content_digest' ] as $field ) {
			if ( isset( $input[ $field ] ) && '' !== $input[ $field ] ) {
				$options[ $field ] = (string) $input[ $field ];
			}
		}
		if ( ! empty( $input['replace'] ) ) {
			$options['replace'] = true;
		}
		return $options;
	}

	/**
	 * Returns the import input for the one bundle that a reimport names.
	 *
	 * @param array<string, mixed> $input Input of a reimport.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_artifact_id_missing`, `wp_codebox_input_invalid`.
	 */
	private function named( array $input ): array {
		$reference = (array) ( $input['artifact_ref'] ?? [] );
		$earlier   = (array) ( $input['artifact_result'] ?? [] );
		$ids       = array_filter(
			[
				$input['artifact_id'] ?? null,
				$input['expected_artifact_id'] ?? null,
				$reference['artifact_id'] ?? $reference['id'] ?? null,
				$earlier['artifact_id'] ?? $earlier['id'] ?? $earlier['artifact']['artifact_id'] ?? null,
			],
			static fn( mixed $id ): bool => is_string( $id ) && '' !== $id
		);
		$id        = (string) reset( $ids );
		if ( '' === $id ) {
			throw Failure::because( ErrorCode::ArtifactIdMissing, __( 'The bundle to import again is not named; give "artifact_id", "artifact_ref" or "artifact_result".', 'codebox' ) );
		}
		if ( count( array_unique( $ids ) ) > 1 ) {
			throw Failure::invalid_input( __( 'The fields "artifact_id", "artifact_ref", "artifact_result" and "expected_artifact_id" name different bundles; name only one.', 'codebox' ) );
		}
		$sources = array_intersect_key( $input, array_flip( [ 'source_bundle_path', 'source_manifest_path', 'archive' ] ) );
		$path    = $reference['source']['path'] ?? $earlier['source']['path'] ?? null;
		if ( [] === array_filter( $sources ) && is_string( $path ) ) {
			$input['source_bundle_path'] = $path;
		}
		$input['expected_artifact_id'] = $id;
		return $input;
	}
}
