<?php
/**
 * Finds the host directories that a task mounts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Converts `plugin`, `theme` and `mounts` of a task to mount rows. The extension decides whether a row is
 * allowed.
 */
final class MountPlan {

	/**
	 * Creates the plan with its dependencies.
	 *
	 * @param InstalledCode $code Lookup of installed plugins and themes.
	 */
	public function __construct( private readonly InstalledCode $code ) {}

	/**
	 * Returns the rows in order: plugin, theme, then `mounts` as given. A row without its own `git` gets the
	 * task's `git`.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return list<array<string, mixed>>
	 * @throws Failure `wp_codebox_mount_missing` when a task of an agent has no mount.
	 */
	public function rows( array $input ): array {
		$rows = [];
		if ( isset( $input['plugin'] ) ) {
			$rows[] = $this->code->plugin_mount( (string) $input['plugin'] );
		}
		if ( isset( $input['theme'] ) ) {
			$rows[] = $this->code->theme_mount( (string) $input['theme'] );
		}
		foreach ( (array) ( $input['mounts'] ?? [] ) as $row ) {
			$rows[] = array_filter( (array) $row, static fn( mixed $value ): bool => [] !== $value && null !== $value );
		}
		if ( [] === $rows && ! empty( $input['runtime_task'] ) ) {
			// An ability of the guest's WordPress can do its work without code of this site.
			return [];
		}
		if ( [] === $rows ) {
			$plugins = array_keys( $this->code->installed( 'plugin' ) );
			$themes  = array_keys( $this->code->installed( 'theme' ) );
			throw Failure::because(
				ErrorCode::MountMissing,
				__( 'The task has no code to work on; give "plugin", "theme" or "mounts".', 'codebox' ),
				[
					/* translators: %s: list of names, or "none". */
					Sentence::of( __( 'Plugins: %s.', 'codebox' ), [] === $plugins ? __( 'none', 'codebox' ) : implode( ', ', $plugins ) ),
					/* translators: %s: list of names, or "none". */
					Sentence::of( __( 'Themes: %s.', 'codebox' ), [] === $themes ? __( 'none', 'codebox' ) : implode( ', ', $themes ) ),
				]
			);
		}
		$git = array_filter( [ 'git' => $input['git'] ?? null ] );
		return array_map( fn( array $row ): array => $this->with_origin( $row ) + $git, $rows );
	}

	/**
	 * Returns the mounted plugins and themes of this site, in the form in which the extension takes them. The
	 * guest activates them; one that cannot be activated does not end the run.
	 *
	 * @param list<array<string, mixed>> $rows Mount rows.
	 * @return array{activate?: list<array{kind: string, name: string}>}
	 */
	public function activations( array $rows ): array {
		$found = [];
		foreach ( $rows as $row ) {
			$mount = $this->code->mount_of( (string) ( $row['source'] ?? '' ) );
			if ( null === $mount || [ $mount['source'], $mount['target'] ] !== [ $row['source'], $row['target'] ?? '' ] ) {
				continue;
			}
			[ 'kind' => $kind, 'slug' => $slug ] = $mount['metadata'];
			$found[]                             = [
				'kind' => $kind,
				'name' => 'theme' === $kind ? $slug : $slug . '/' . $this->main_file( $slug ),
			];
		}
		return [] === $found ? [] : [ 'activate' => $found ];
	}

	/**
	 * Returns the file of an installed plugin that WordPress loads; if several files have a header, the one that
	 * is named like its directory.
	 *
	 * @param string $slug Directory of the plugin.
	 */
	private function main_file( string $slug ): string {
		$files = array_keys( get_plugins( '/' . $slug ) );
		return in_array( $slug . '.php', $files, true ) ? $slug . '.php' : (string) current( $files );
	}

	/**
	 * Adds `metadata.origin`, the identity of the source code on this site. An apply compares it with its
	 * target, so a value that the caller sent is dropped.
	 *
	 * @param array<string, mixed> $row Mount row.
	 * @return array<string, mixed>
	 */
	private function with_origin( array $row ): array {
		$metadata = array_diff_key( (array) ( $row['metadata'] ?? [] ), [ 'origin' => 1 ] );
		$origin   = is_string( $row['source'] ?? null ) ? $this->code->origin( $row['source'] ) : null;
		if ( null !== $origin ) {
			$metadata['origin'] = $origin;
		}
		unset( $row['metadata'] );
		return $row + ( [] === $metadata ? [] : [ 'metadata' => $metadata ] );
	}
}
