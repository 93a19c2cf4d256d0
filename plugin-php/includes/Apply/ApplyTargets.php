<?php
/**
 * Which host directories a change belongs to.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;

defined( 'ABSPATH' ) || exit;

/**
 * A bundle names mount targets, never host paths. A plugin or theme target is the
 * installed plugin or theme; any other needs `apply_target.directory` (or, for
 * several, `apply_target.directories`) from the caller, inside what the caller may touch.
 */
final class ApplyTargets {

	/**
	 * Wires the map.
	 *
	 * @param InstalledCode $code Installed plugins and themes.
	 * @param Site          $site This site.
	 */
	public function __construct(
		private readonly InstalledCode $code,
		private readonly Site $site
	) {}

	/**
	 * Declared mount target to canonical host directory, for the approved files.
	 *
	 * @param array<string, mixed> $artifact  A bundle.
	 * @param list<string>         $approved  Approved paths.
	 * @param array<string, mixed> $target    `apply_target` of the caller.
	 * @param Authority            $authority In whose name.
	 * @return array<string, string>
	 * @throws Failure When a target has no directory or the caller may not touch it.
	 */
	public function resolve( array $artifact, array $approved, array $target, Authority $authority ): array {
		$directories = [];
		foreach ( ArtifactService::changed_files( $artifact ) as $entry ) {
			$mount = (string) ( $entry['mountTarget'] ?? '' );
			if ( '' === $mount || isset( $directories[ $mount ] ) || ! in_array( $entry['path'] ?? null, $approved, true ) ) {
				continue;
			}
			$directories[ $mount ] = $this->directory( $mount, $target, $authority );
		}
		if ( isset( $target['directory'] ) && count( array_unique( $directories ) ) !== count( $directories ) ) {
			throw Failure::because( ErrorCode::InputInvalid, 'The change spans several mounts, so apply_target.directory is ambiguous; give apply_target.directories as a map from mount target to directory.' );
		}
		return $directories;
	}

	/**
	 * The host directory of one declared mount target.
	 *
	 * @param string               $mount     Declared mount target.
	 * @param array<string, mixed> $target    `apply_target` of the caller.
	 * @param Authority            $authority In whose name.
	 * @throws Failure When it has none or the caller may not touch it.
	 */
	public function directory( string $mount, array $target, Authority $authority ): string {
		return $this->code->directory_of( $mount ) ?? $this->named( $mount, $target, $authority );
	}

	/**
	 * The directory the caller names for a target.
	 *
	 * @param string               $mount     Declared mount target.
	 * @param array<string, mixed> $target    `apply_target`.
	 * @param Authority            $authority In whose name.
	 */
	private function named( string $mount, array $target, Authority $authority ): string {
		$given = $target['directories'][ $mount ] ?? $target['directory'] ?? null;
		if ( ! is_string( $given ) || '' === $given ) {
			throw Failure::because(
				ErrorCode::InputInvalid,
				sprintf( 'The change was made in %s, which is no installed plugin or theme; name the host directory in apply_target.directory.', $mount )
			);
		}
		$real = str_starts_with( $given, '/' ) ? realpath( $given ) : false;
		if ( false === $real || ! is_dir( $real ) ) {
			throw Failure::because( ErrorCode::InputInvalid, sprintf( 'The directory named for %s does not exist or is not absolute.', $mount ) );
		}
		if ( $this->site->refuses( $real ) ) {
			throw Failure::because( ErrorCode::MountDenied, sprintf( 'The directory named for %s holds this site, the runtime or the system, or lies in them and is no installed plugin or theme; name the directory of the code that was changed.', $mount ) );
		}
		$roots = $this->site->allowed_roots( $authority );
		if ( null !== $roots && ! Site::is_within( $real, $roots ) ) {
			throw Failure::because( ErrorCode::MountDenied, sprintf( 'The directory named for %s lies outside the installed plugins, themes and wp_codebox.mount_roots.', $mount ) );
		}
		return $real;
	}
}
