<?php
/**
 * Resolves the host directories that a change belongs to.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SingleFilePlugins;
use WPCodebox\Host\Site;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A bundle names mount targets, never host paths. A plugin or theme target resolves to the installed plugin
 * or theme. Any other target needs `apply_target.directory` (or `apply_target.directories` for several) from
 * the caller, inside the caller's permitted directories. In both cases the directory must be the code that
 * the run mounted, according to the origin in the bundle's mounts. A single-file plugin lies directly in the
 * plugin directory: a change with this directory as target may edit installed single-file plugins, not add one.
 */
final class ApplyTargets {

	/**
	 * Creates the resolver with its dependencies.
	 *
	 * @param InstalledCode $code Lookup of installed plugins and themes.
	 * @param Site          $site Site the plugin runs on.
	 */
	public function __construct(
		private readonly InstalledCode $code,
		private readonly Site $site
	) {}

	/**
	 * Returns the canonical host directory for each mount target (directory in the guest) of the approved files.
	 *
	 * @param array<string, mixed> $artifact  Artifact bundle.
	 * @param list<string>         $approved  Paths of the approved files.
	 * @param array<string, mixed> $target    `apply_target` of the ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, string>
	 * @throws Failure When a target has no directory, is other code, or is outside the caller's directories.
	 */
	public function resolve( array $artifact, array $approved, array $target, Authority $authority ): array {
		$directories = [];
		$mounted     = $this->origins( $artifact );
		$single      = self::is_of_single_files( SingleFilePlugins::TARGET, $mounted );
		// By path: a search in the list for each changed file would take quadratic time.
		$approved = array_flip( $approved );
		foreach ( ArtifactService::changed_files( $artifact ) as $entry ) {
			$mount = (string) ( $entry['mountTarget'] ?? '' );
			if ( '' === $mount || ! isset( $approved[ $entry['path'] ?? '' ] ) ) {
				continue;
			}
			if ( $single && SingleFilePlugins::TARGET === $mount ) {
				$directories[ $mount ] = SingleFilePlugins::directory_of( (string) ( $entry['relativePath'] ?? '' ) );
				continue;
			}
			$directories[ $mount ] ??= $this->directory( $mount, $target, $authority );
		}
		if ( isset( $target['directory'] ) && count( array_unique( $directories ) ) !== count( $directories ) ) {
			throw Failure::invalid_input( __( 'The change has files of several mounted directories, and "apply_target.directory" names only one; give "apply_target.directories", a map from each path in the sandbox to a directory of this host.', 'codebox' ) );
		}
		// The plugin directory contains the directory of this plugin, but single-file plugins are no part of this plugin.
		$this->assert_not_own( $single ? array_diff_key( $directories, [ SingleFilePlugins::TARGET => 1 ] ) : $directories );
		foreach ( $this->differing( $artifact, $directories ) as $mount ) {
			$given = self::given( $mount, $target );
			// The operator may deliberately apply a change to other code by naming the directory itself.
			if ( Authority::Operator !== $authority || null === $given || realpath( $given ) !== $directories[ $mount ] ) {
				throw Failure::because(
					ErrorCode::ApplyTargetMismatch,
					/* translators: %s: directory in the sandbox. */
					Sentence::of( __( 'The run that changed %s may have started from other code than the target directory has: this site has no record that they are the same. Run the task again on the code of the target.', 'codebox' ), $mount ),
					[ __( 'An operator can apply it nevertheless, by naming the directory at the shell: wp codebox artifacts apply … --apply-target=\'{"directory":"…"}\'.', 'codebox' ) ]
				);
			}
		}
		return $directories;
	}

	/**
	 * Returns mount targets whose directory is not the code that the run mounted there.
	 *
	 * @param array<string, mixed>  $artifact    Bundle that verifies.
	 * @param array<string, string> $directories Canonical host directory by mount target.
	 * @return list<string>
	 */
	public function differing( array $artifact, array $directories ): array {
		$mounted = $this->origins( $artifact );
		return array_values(
			array_filter(
				array_keys( $directories ),
				fn( string $mount ): bool => self::is_of_single_files( $mount, $mounted )
					? realpath( WP_PLUGIN_DIR ) !== $directories[ $mount ]
					: ! self::same( $mounted[ $mount ] ?? null, $this->code->origin( $directories[ $mount ] ) )
			)
		);
	}

	/**
	 * Returns the recorded origin of each mount of a bundle, by mount target.
	 *
	 * @param array<string, mixed> $artifact Bundle that verifies.
	 * @return array<string, mixed>
	 */
	private function origins( array $artifact ): array {
		return array_map( static fn( mixed $metadata ): mixed => $metadata['origin'] ?? null, array_column( ArtifactService::mounts( $artifact ), 'metadata', 'target' ) );
	}

	/**
	 * Checks whether a mount has only plugins of a single file.
	 *
	 * @param string               $mount   Mount target.
	 * @param array<string, mixed> $origins Recorded origin by mount target.
	 */
	private static function is_of_single_files( string $mount, array $origins ): bool {
		return SingleFilePlugins::TARGET === $mount && SingleFilePlugins::ORIGIN === ( $origins[ $mount ] ?? null );
	}

	/**
	 * Compares a recorded origin with the origin of a directory, ignoring key order.
	 *
	 * @param mixed                      $recorded Origin recorded in the bundle.
	 * @param array<string, string>|null $actual   Origin of the directory.
	 */
	private static function same( mixed $recorded, ?array $actual ): bool {
		if ( ! is_array( $recorded ) || null === $actual ) {
			return false;
		}
		ksort( $recorded );
		ksort( $actual );
		return $recorded === $actual;
	}

	/**
	 * Refuses this plugin's own directory as a target, because this plugin enforces the apply rules.
	 *
	 * @param array<string, string> $directories Canonical host directory by mount target.
	 * @throws Failure `wp_codebox_mount_denied`.
	 */
	private function assert_not_own( array $directories ): void {
		$own = (string) realpath( dirname( __DIR__, 2 ) );
		foreach ( $directories as $mount => $directory ) {
			if ( Site::is_within( $own, [ $directory ] ) || Site::is_within( $directory, [ $own ] ) ) {
				/* translators: %s: directory in the sandbox. */
				throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The change in %s would be written to Codebox itself, which is never done; to change Codebox, install another version of it like any plugin.', 'codebox' ), $mount ) );
			}
		}
	}

	/**
	 * Returns the directory that the caller supplied for a target, unchanged.
	 *
	 * @param string               $mount  Mount target from the task.
	 * @param array<string, mixed> $target Field `apply_target` of the input.
	 */
	private static function given( string $mount, array $target ): ?string {
		$given = $target['directories'][ $mount ] ?? $target['directory'] ?? null;
		return is_string( $given ) && '' !== $given ? $given : null;
	}

	/**
	 * Resolves one mount target (directory in the guest) to its host directory.
	 *
	 * @param string               $mount     Mount target from the task.
	 * @param array<string, mixed> $target    `apply_target` of the ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @throws Failure When no directory is given or the caller may not access it.
	 */
	public function directory( string $mount, array $target, Authority $authority ): string {
		return $this->code->directory_of( $mount ) ?? $this->named( $mount, $target, $authority );
	}

	/**
	 * Resolves the directory that the caller supplied for a target.
	 *
	 * @param string               $mount     Mount target from the task.
	 * @param array<string, mixed> $target    Field `apply_target` of the input.
	 * @param Authority            $authority User or operator the call runs as.
	 */
	private function named( string $mount, array $target, Authority $authority ): string {
		$given = self::given( $mount, $target );
		if ( null === $given ) {
			throw Failure::invalid_input(
				/* translators: %s: directory in the sandbox. */
				Sentence::of( __( 'The change was made in %s, which is not an installed plugin or theme; name the directory of this host to write to in "apply_target.directory".', 'codebox' ), $mount )
			);
		}
		$real = str_starts_with( $given, '/' ) ? realpath( $given ) : false;
		if ( false === $real || ! is_dir( $real ) ) {
			/* translators: %s: directory in the sandbox. */
			throw Failure::invalid_input( Sentence::of( __( 'The host directory given for the sandbox path %s does not exist, or its path is not absolute.', 'codebox' ), $mount ) );
		}
		if ( $this->site->refuses( $real ) ) {
			/* translators: %s: directory in the sandbox. */
			throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The host directory given for the sandbox path %s contains this site, a directory of Codebox or a system directory, or is inside one of them and is not an installed plugin or theme; name the directory of the code that was changed.', 'codebox' ), $mount ) );
		}
		$roots = $this->site->allowed_roots( $authority );
		if ( null !== $roots && ! Site::is_within( $real, $roots ) ) {
			/* translators: %s: directory in the sandbox. */
			throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The host directory given for the sandbox path %s is none of the installed plugins and themes and lies outside the directories of wp_codebox.mount_roots in php.ini.', 'codebox' ), $mount ) );
		}
		return $real;
	}
}
