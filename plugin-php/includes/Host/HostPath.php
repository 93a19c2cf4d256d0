<?php
/**
 * Checks host paths given by a caller.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * A caller may read or write bundles and archives in the same directories that the caller may mount. A path
 * outside of these directories gets the same refusal whether it exists or not.
 */
final class HostPath {

	/**
	 * Creates the rule with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Returns the canonical path of a file or directory to read.
	 *
	 * @param string    $path      Path as the caller gave it.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_mount_denied`, `wp_codebox_artifact_import_source_invalid`.
	 */
	public function readable( string $path, Authority $authority ): string {
		$this->assert_plain( $path );
		$real = realpath( $path );
		$this->assert_allowed( false === $real ? $path : $real, $authority );
		if ( false === $real ) {
			throw Failure::because( ErrorCode::ArtifactImportSourceInvalid, __( 'The path does not exist; name a bundle directory, its manifest.json or an archive of the bundle.', 'codebox' ) );
		}
		return $real;
	}

	/**
	 * Returns the canonical path of a file to create. Its directory must exist and must not be served by a
	 * web server.
	 *
	 * @param string    $path      Path as the caller gave it.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_mount_denied`, `wp_codebox_input_invalid`.
	 */
	public function writable( string $path, Authority $authority ): string {
		$this->assert_plain( $path );
		$directory = realpath( dirname( $path ) );
		$canonical = false === $directory ? dirname( $path ) : $directory;
		if ( Site::is_within( $canonical, $this->site->denied() ) ) {
			throw Failure::because( ErrorCode::MountDenied, __( 'The file would lie inside the site, where the web server may serve it to anybody; name a directory outside of the site.', 'codebox' ) );
		}
		$this->assert_rooted( $canonical, $authority );
		if ( false === $directory || ! is_dir( $directory ) || '' === basename( $path ) ) {
			throw Failure::invalid_input( __( 'The directory of the file to write does not exist; make it first.', 'codebox' ) );
		}
		return rtrim( $directory, '/' ) . '/' . basename( $path );
	}

	/**
	 * Requires an absolute path without dot segments, control characters and stream wrappers.
	 *
	 * @param string $path Path as the caller gave it.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	private function assert_plain( string $path ): void {
		if ( ! str_starts_with( $path, '/' ) || 1 === preg_match( '#(^|/)\.\.?(/|$)|[\x00-\x1f\x7f]#', $path ) ) {
			throw Failure::invalid_input( __( 'The path must be absolute, without the parts "." and ".." and without control characters; correct it.', 'codebox' ) );
		}
	}

	/**
	 * Fails unless the caller may access the path.
	 *
	 * @param string    $path      Canonical path, or the given path when it does not exist.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_mount_denied`.
	 */
	private function assert_allowed( string $path, Authority $authority ): void {
		foreach ( $this->site->denied() as $denied ) {
			if ( Site::is_within( $denied, [ $path ] ) ) {
				throw Failure::because( ErrorCode::MountDenied, __( 'The path is or contains a directory of this site, such as its root, wp-content or uploads; name another directory.', 'codebox' ) );
			}
		}
		$this->assert_rooted( $path, $authority );
	}

	/**
	 * Fails unless the path is or lies below a directory that the caller may access.
	 *
	 * @param string    $path      Canonical path, or the given path when it does not exist.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_mount_denied`.
	 */
	private function assert_rooted( string $path, Authority $authority ): void {
		$roots = $this->site->allowed_roots( $authority );
		if ( null !== $roots && ! Site::is_within( $path, $roots ) ) {
			throw Failure::because( ErrorCode::MountDenied, __( 'The path lies outside the installed plugins and themes and the directories of wp_codebox.mount_roots in php.ini.', 'codebox' ) );
		}
	}
}
