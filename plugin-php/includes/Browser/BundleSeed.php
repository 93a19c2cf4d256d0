<?php
/**
 * Contents of a bundle for a browser sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use Throwable;
use WPCodebox\Access;
use WPCodebox\Apply\ApplyTargets;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleRecord;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\SingleFilePlugins;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Sentence;
use WPCodebox\Transfer\ExportService;
use ZipArchive;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the new contents of a bundle that the current user may see, that verifies, and whose change still fits the code of this site.
 */
final class BundleSeed {

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param Access          $access    Decides which bundles a caller may see.
	 * @param ArtifactService $artifacts Verifies bundles and compares them with this site.
	 * @param ApplyTargets    $targets   Finds the code that a bundle belongs to.
	 * @param Site            $site      Site the plugin runs on.
	 * @param PrivateFiles    $files     Store with a directory for temporary files.
	 */
	public function __construct(
		private readonly Access $access,
		private readonly ArtifactService $artifacts,
		private readonly ApplyTargets $targets,
		private readonly Site $site,
		private readonly PrivateFiles $files
	) {}

	/**
	 * Returns what a bundle changes, by directory, or single file of a plugin, below `wp-content`.
	 *
	 * @param string $reference Artifact id, run id, or the beginning of either.
	 * @return array<string, array{source: string, files: array<string, string>, deleted: list<string>}> Host directory or file, new
	 *   contents by name relative to the directory, and deleted files below `wp-content`.
	 * @throws Failure `wp_codebox_artifact_not_found` also for a bundle of another user, `wp_codebox_apply_conflict` when the code of this
	 *   site changed; else the error code of the failed check.
	 */
	public function overlays( string $reference ): array {
		$artifact = BundleRecord::present( $this->access->bundle( $reference, Authority::User ) );
		$run_id   = (string) $artifact['run_id'];
		$changed  = ArtifactService::changed_files( $artifact );
		if ( [] === $changed ) {
			throw Failure::invalid_input( __( 'This bundle changes no file, so a browser sandbox would show nothing of it.', 'codebox' ) );
		}
		$paths   = array_column( $changed, 'path' );
		// Targets are read only from a bundle that verifies; for any other bundle the preflight reports the violations.
		$sound   = true === ( $this->artifacts->verification( $artifact )['valid'] ?? false );
		$targets = $sound ? $this->targets->resolve( $artifact, $paths, [], Authority::User ) : [];
		try {
			$request = [
				'approved_files'         => $paths,
				// Nothing is applied here, so a bundle from a browser needs no confirmation.
				'confirm_browser_origin' => true,
			];
			$this->artifacts->preflight( $run_id, $request + ( $sound ? [ 'targets' => $targets ] : [] ) );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			throw ErrorCode::ApplyConflict->value !== $failure->error_code ? $failure : Failure::because(
				ErrorCode::ApplyConflict,
				__( 'The code on this site changed since the run of this bundle started from it, so the bundle cannot be opened on top of it.', 'codebox' ),
				[ __( 'Run the task again on the present code, or install the version that the run started from.', 'codebox' ) ],
				$failure->data,
				$thrown
			);
		}
		$contents = $this->contents( $run_id, $paths );
		$overlays = [];
		foreach ( $changed as $entry ) {
			$mount    = (string) ( $entry['mountTarget'] ?? '' );
			$relative = (string) ( $entry['relativePath'] ?? '' );
			if ( ! str_starts_with( $mount, SeedArchives::CONTENT ) || ! isset( $targets[ $mount ] ) ) {
				throw Failure::invalid_input( __( 'The change of this bundle is outside of plugins and themes, so a browser sandbox cannot show it.', 'codebox' ) );
			}
			$below  = substr( $mount, strlen( SeedArchives::CONTENT ) );
			$single = SingleFilePlugins::TARGET === $mount;
			$target = $single ? "$below/$relative" : $below;

			$overlays[ $target ] ??= [
				'source'  => $targets[ $mount ] . ( $single ? "/$relative" : '' ),
				'files'   => [],
				'deleted' => [],
			];
			if ( 'deleted' === ( $entry['status'] ?? '' ) ) {
				$overlays[ $target ]['deleted'][] = "$below/$relative";
			} elseif ( isset( $contents[ "$mount/$relative" ] ) ) {
				$overlays[ $target ]['files'][ $relative ] = $contents[ "$mount/$relative" ];
			} elseif ( isset( $contents[ basename( $mount ) . "/$relative" ] ) ) {
				$overlays[ $target ]['files'][ $relative ] = $contents[ basename( $mount ) . "/$relative" ];
			}
		}
		return $overlays;
	}

	/**
	 * Returns the new contents by name: below the guest path of the mount or, in a bundle of one mount, below its last component.
	 *
	 * @param string       $run_id Run id of the bundle.
	 * @param list<string> $paths  Changed paths.
	 * @return array<string, string>
	 * @throws Failure `wp_codebox_browser_seed_too_large`.
	 */
	private function contents( string $run_id, array $paths ): array {
		ArchiveWriter::assert_available();
		$most = min( ExportService::MAX_BYTES, CodeFiles::MAX_BYTES );
		try {
			$bytes = Artifacts::download( $this->site->id(), $run_id, $paths, 'zip', $most );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			throw ErrorCode::ArtifactTooLarge->value !== $failure->error_code ? $failure : Failure::because(
				ErrorCode::BrowserSeedTooLarge,
				/* translators: %s: size such as 16 MB. */
				Sentence::of( __( 'The new files of this bundle are too large for a browser sandbox, which takes at most %s of new files.', 'codebox' ), (string) size_format( $most ) ),
				[ __( 'Open the bundle in a preview of a sandbox on this host, or download its patch.', 'codebox' ) ],
				$failure->data,
				$thrown
			);
		}
		$file = $this->files->temporary();
		// phpcs:disable WordPress.WP.AlternativeFunctions -- a temporary file of this request.
		try {
			$archive = new ZipArchive();
			if ( strlen( $bytes ) !== file_put_contents( $file, $bytes ) || true !== $archive->open( $file, ZipArchive::RDONLY ) ) {
				throw PrivateDirectory::failed();
			}
			$contents = [];
			for ( $index = 0; $index < $archive->numFiles; $index++ ) {
				$name = (string) $archive->getNameIndex( $index );
				$text = $archive->getFromIndex( $index );
				if ( false === $text ) {
					throw PrivateDirectory::failed();
				}
				// The archive omits the leading slash of guest paths.
				$contents[ str_starts_with( $name, 'wordpress/' ) ? "/$name" : $name ] = $text;
			}
			$archive->close();
			return $contents;
		} finally {
			is_file( $file ) && unlink( $file );
		}
		// phpcs:enable
	}
}
