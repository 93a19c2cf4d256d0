<?php
/**
 * Reads and discards artifact bundles.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\ArtifactsRoot;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Serves the bundles of this site. A reference is an artifact id, a run id, or a unique prefix of either; the
 * extension resolves it.
 */
final class ArtifactService {

	public const PER_PAGE = 50;

	private const MOUNTS = 'files/mounts.jsonl';

	/** Size limit of all patches in one response, in bytes. */
	private const DIFF_BYTES = 8388608;

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate  Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site  Site the plugin runs on.
	 * @param ArtifactsRoot $root  Directory that bundles are read from.
	 * @param AuditTrail    $audit Audit log that records each decision.
	 * @param BundleHistory $history Tells what became of a bundle.
	 * @param Settings      $settings Settings that turn the adapter of this plugin on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site,
		private readonly ArtifactsRoot $root,
		private readonly AuditTrail $audit,
		private readonly BundleHistory $history,
		private readonly Settings $settings
	) {}

	/**
	 * Lists bundles, newest first.
	 *
	 * @param array<string, mixed> $input Ability input with `page` and `per_page`.
	 * @return array<string, mixed> `wp-codebox/artifact-list/v1`.
	 */
	public function list( array $input ): array {
		$this->gate->check();
		$rows     = Artifacts::list( $this->root->partition( $input ) );
		$per_page = (int) ( $input['per_page'] ?? self::PER_PAGE );
		$page     = (int) ( $input['page'] ?? 1 );
		return [
			'success'   => true,
			'schema'    => 'wp-codebox/artifact-list/v1',
			'root'      => [] === $rows ? '' : dirname( (string) $rows[0]['directory'] ),
			'total'     => count( $rows ),
			'page'      => $page,
			'per_page'  => $per_page,
			'artifacts' => $this->history->with_state( array_map( [ BundleRecord::class, 'present' ], array_slice( $rows, ( $page - 1 ) * $per_page, $per_page ) ) ),
		];
	}

	/**
	 * Lists decisions, applies and roll backs of all bundles, newest first.
	 *
	 * @param array<string, mixed> $input Ability input with `before?` and `per_page?`.
	 * @return array<string, mixed> `wp-codebox/artifact-history/v1`.
	 */
	public function history( array $input ): array {
		$this->gate->check();
		return $this->history->page( $input );
	}

	/**
	 * Reads one bundle as far as possible, without verification.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @return array<string, mixed> `wp-codebox/artifact/v1`.
	 */
	public function get( array $input ): array {
		$artifact = $this->artifact( $input );
		return [
			'success'  => true,
			'schema'   => 'wp-codebox/artifact/v1',
			'artifact' => $artifact,
		] + $this->past_and_next( $artifact );
	}

	/**
	 * Verifies a bundle with the signing keys that this site trusts.
	 *
	 * @param array<string, mixed> $artifact Bundle with its `directory`.
	 * @return array<string, mixed> `wp-codebox/artifact-bundle-verification/v1`.
	 */
	public function verification( array $artifact ): array {
		return Artifacts::verify( (string) $artifact['directory'], [ 'trusted_keys' => $this->settings->trusted_keys() ] );
	}

	/**
	 * Checks a bundle of this site before an apply, with the signing keys that this site trusts.
	 *
	 * @param string               $reference Artifact id, run id, or the beginning of either.
	 * @param array<string, mixed> $request   Further members of the extension's preflight request.
	 * @return array<string, mixed> Result of the extension's preflight.
	 */
	public function preflight( string $reference, array $request ): array {
		return Artifacts::preflight( $this->site->id(), $reference, $request + [ 'trusted_keys' => $this->settings->trusted_keys() ] );
	}

	/**
	 * Reads one bundle and verifies it.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @return array<string, mixed> `wp-codebox/artifact-inspection/v1`.
	 */
	public function inspect( array $input ): array {
		$artifact     = $this->artifact( $input );
		$verification = $this->verification( $artifact );
		$inspection   = [
			'success'      => true,
			'schema'       => 'wp-codebox/artifact-inspection/v1',
			'artifact'     => $artifact,
			'verification' => $verification,
		] + $this->past_and_next( $artifact );
		if ( isset( $verification['manifest_sha256'] ) ) {
			$inspection['manifest_sha256'] = (string) $verification['manifest_sha256'];
		}
		return $inspection;
	}

	/**
	 * Returns what became of a bundle, and which adapter would apply it.
	 *
	 * @param array<string, mixed> $artifact Bundle, as far as it can be read.
	 * @return array<string, mixed>
	 */
	private function past_and_next( array $artifact ): array {
		return $this->history->of( $artifact ) + [ 'adapter' => ApplyAdapters::next( $this->settings ) ];
	}

	/**
	 * Returns the patch of all or of selected paths, byte for byte.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id` and `files`.
	 */
	public function diff( array $input ): string {
		$this->gate->check();
		return Artifacts::diff( $this->root->partition( $input ), $this->reference( $input ), array_values( (array) ( $input['files'] ?? [] ) ) );
	}

	/**
	 * Returns the change file by file, for a bundle that verifies, regardless of its signing key. A patch
	 * that exceeds the response limit is left out and its row has `omitted`; the caller can request that file
	 * alone.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id` and `files?`: changed paths; all
	 *   without it.
	 * @return array<string, mixed> `wp-codebox/artifact-diff/v1`.
	 * @throws Failure `wp_codebox_input_invalid` for a path that is not among the changed files.
	 */
	public function files( array $input ): array {
		$artifact = $this->artifact( $input );
		$rows     = Artifacts::files( $this->site->id(), (string) $artifact['run_id'] );
		$wanted   = array_values( array_map( 'strval', (array) ( $input['files'] ?? [] ) ) );
		$unknown  = array_values( array_diff( $wanted, array_column( $rows, 'path' ) ) );
		if ( [] !== $unknown ) {
			/* translators: %d: number of files. */
			throw Failure::invalid_input( Sentence::of( __( '%d of the paths in "files" are not among the files that this bundle changes; use paths as get-artifact lists them.', 'codebox' ), count( $unknown ) ), [], [ 'files' => $unknown ] );
		}
		$files  = [];
		$left   = self::DIFF_BYTES;
		$wanted = array_flip( $wanted );
		foreach ( $rows as $row ) {
			if ( [] !== $wanted && ! isset( $wanted[ $row['path'] ] ) ) {
				continue;
			}
			$bytes = strlen( (string) ( $row['patch'] ?? $row['patch_base64'] ?? '' ) );
			if ( $bytes > $left ) {
				$row = [ 'omitted' => true ] + array_diff_key( $row, array_flip( [ 'patch', 'patch_base64' ] ) );
			} else {
				$left -= $bytes;
			}
			$files[] = $row;
		}
		return [
			'success'     => true,
			'schema'      => 'wp-codebox/artifact-diff/v1',
			'artifact_id' => $artifact['artifact_id'],
			'run_id'      => $artifact['run_id'],
			'total'       => count( $rows ),
			'files'       => $files,
		];
	}

	/**
	 * Deletes a bundle, even one that cannot be read.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @return array<string, mixed> The deleted bundle, `wp-codebox/artifact/v1`.
	 */
	public function discard( array $input ): array {
		$found = array_intersect_key( $this->artifact( $input ), array_flip( [ 'artifact_id', 'run_id' ] ) );
		$this->audit->write( 'discard', $found + [ 'status' => 'started' ] );
		try {
			$gone = Artifacts::discard( $this->site->id(), (string) ( $found['run_id'] ?? $this->reference( $input ) ) );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'discard', $found, $thrown );
		}
		$audit = $this->audit->write( 'discard', array_intersect_key( $gone, $found ) + $found + [ 'status' => 'success' ] );
		return [
			'success' => true,
			'schema'  => 'wp-codebox/artifact/v1',
			'audit'   => self::audit_reference( $audit ),
		] + $gone + [
			'discarded' => true,
			'state'     => BundleHistory::DISCARDED,
		];
	}

	/**
	 * Reads a bundle through the extension and adds its artifact id as `id`.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @return array<string, mixed>
	 */
	public function artifact( array $input ): array {
		$this->gate->check();
		$artifact = Artifacts::get( $this->root->partition( $input ), $this->reference( $input ) );
		return BundleRecord::present( $artifact );
	}

	/**
	 * Returns the bundle reference of the input: an artifact id, a run id or a prefix of either.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @throws Failure `wp_codebox_artifact_id_missing`.
	 */
	public function reference( array $input ): string {
		$reference = trim( (string) ( $input['artifact_id'] ?? '' ) );
		if ( '' === $reference ) {
			throw Failure::because( ErrorCode::ArtifactIdMissing, __( 'No artifact was named; give its artifact id, its run id, or the beginning of either.', 'codebox' ) );
		}
		return $reference;
	}

	/**
	 * Returns the entries of `files/changed-files.json`.
	 *
	 * @param array<string, mixed> $artifact Artifact bundle.
	 * @return list<array<string, mixed>>
	 */
	public static function changed_files( array $artifact ): array {
		$changed = (array) ( $artifact['changed_files'] ?? [] );
		return array_values( array_filter( (array) ( $changed['files'] ?? $changed ), 'is_array' ) );
	}

	/**
	 * Returns the rows of `files/mounts.jsonl`, the mounts of the run; none when the file does not match the manifest's hash.
	 *
	 * @param array<string, mixed> $artifact Bundle that verifies.
	 * @return list<array<string, mixed>>
	 */
	public static function mounts( array $artifact ): array {
		$hashes = array_column( (array) ( $artifact['manifest']['files'] ?? [] ), 'sha256', 'path' );
		$file   = $artifact['directory'] . '/' . self::MOUNTS;
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- a file of this host, no address.
		$bytes  = isset( $hashes[ self::MOUNTS ] ) && is_file( $file ) ? (string) file_get_contents( $file ) : '';
		if ( hash( 'sha256', $bytes ) !== ( $hashes[ self::MOUNTS ]['value'] ?? '' ) ) {
			return [];
		}
		$rows = array_map( static fn( string $line ): mixed => json_decode( $line, true ), array_filter( explode( "\n", $bytes ) ) );
		return array_values( array_filter( $rows, 'is_array' ) );
	}

	/**
	 * Returns the part of an audit record that goes to the caller.
	 *
	 * @param array<string, mixed> $record Audit record as stored.
	 * @return array<string, mixed>
	 */
	public static function audit_reference( array $record ): array {
		return array_intersect_key( $record, array_flip( [ 'seq', 'hash', 'timestamp' ] ) );
	}
}
