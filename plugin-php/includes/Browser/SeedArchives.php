<?php
/**
 * Archives of the code that a browser sandbox starts with.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SingleFilePlugins;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Packs installed plugins and themes, and bundles on top of them. A slug is looked up among the installed code and never
 * joined to a path.
 */
final class SeedArchives {

	/** Directory of the sandbox that all code is below. */
	public const CONTENT = '/wordpress/wp-content/';

	/**
	 * Creates the archives with its dependencies.
	 *
	 * @param InstalledCode $code    Lookup of installed plugins and themes.
	 * @param ArchiveWriter $writer  Writer of archives.
	 * @param BundleSeed    $bundles Reader of the contents of bundles.
	 */
	public function __construct(
		private readonly InstalledCode $code,
		private readonly ArchiveWriter $writer,
		private readonly BundleSeed $bundles
	) {}

	/**
	 * Packs the roots. Each plugin and theme is in the result once.
	 *
	 * @param list<array{kind: string, slug: string}> $roots Plugins, themes and bundles.
	 * @return list<array{target: string, path: string, archive: array{sha256: string, bytes: int}, overlay?: array{sha256: string, bytes: int, deleted: list<string>}}>
	 * @throws Failure When one is unknown, too large, or does not fit any more.
	 */
	public function pack( array $roots ): array {
		$packed = [];
		foreach ( $roots as $root ) {
			$slug = (string) ( $root['slug'] ?? '' );
			$rows = match ( $root['kind'] ?? '' ) {
				'plugin' => [ $this->plugin( $slug ) ],
				'theme'  => $this->theme( $slug ),
				'bundle' => $this->bundle( $slug ),
				default  => throw Failure::invalid_input( __( 'The "kind" of each entry of "roots" must be plugin, theme or bundle.', 'codebox' ) ),
			};
			foreach ( $rows as $row ) {
				// An overlay wins over the plain code of the same directory.
				if ( ! isset( $packed[ $row['target'] ] ) || isset( $row['overlay'] ) ) {
					$packed[ $row['target'] ] = $row;
				}
			}
		}
		return array_values( $packed );
	}

	/**
	 * Packs a plugin: its directory, or its single file.
	 *
	 * @param string $slug Directory name, or file name with or without `.php`.
	 * @return array{target: string, path: string, archive: array{sha256: string, bytes: int}}
	 */
	private function plugin( string $slug ): array {
		$file = null === $this->code->directory( 'plugin', $slug ) ? SingleFilePlugins::path( $slug ) : null;
		// Without either, plugin_mount() throws and names the installed plugins.
		return null === $file ? $this->root( 'plugins/' . $slug, $this->code->plugin_mount( $slug )['source'] ) : $this->root( 'plugins/' . basename( $file ), $file );
	}

	/**
	 * Packs a theme and, for a child theme, its parent.
	 *
	 * @param string $slug Directory name.
	 * @return list<array{target: string, path: string, archive: array{sha256: string, bytes: int}}>
	 */
	private function theme( string $slug ): array {
		$rows   = [ $this->root( 'themes/' . $slug, $this->code->theme_mount( $slug )['source'] ) ];
		$parent = wp_get_theme( $slug )->parent();
		if ( $parent ) {
			$name   = $parent->get_stylesheet();
			$rows[] = $this->root( 'themes/' . $name, $this->code->theme_mount( $name )['source'] );
		}
		return $rows;
	}

	/**
	 * Packs the code that a bundle belongs to as it is on this site now, and the files of the bundle as an overlay.
	 *
	 * @param string $reference Artifact id.
	 * @return list<array{target: string, path: string, archive: array{sha256: string, bytes: int}, overlay?: array{sha256: string, bytes: int, deleted: list<string>}}>
	 */
	private function bundle( string $reference ): array {
		$rows = [];
		foreach ( $this->bundles->overlays( $reference ) as $target => $overlay ) {
			$rows[] = $this->root( $target, $overlay['source'] ) + [
				'overlay' => $this->writer->store( [], $overlay['files'] ) + [ 'deleted' => $overlay['deleted'] ],
			];
			// A child theme needs its parent to start.
			if ( str_starts_with( $target, 'themes/' ) ) {
				array_push( $rows, ...array_slice( $this->theme( substr( $target, 7 ) ), 1 ) );
			}
		}
		return $rows;
	}

	/**
	 * Packs one directory, or the file of a plugin.
	 *
	 * @param string $target Name below `wp-content`.
	 * @param string $source Canonical directory or file of this host.
	 * @return array{target: string, path: string, archive: array{sha256: string, bytes: int}}
	 * @throws Failure `wp_codebox_mount_source_invalid` for a directory without files.
	 */
	private function root( string $target, string $source ): array {
		$files = is_dir( $source ) ? CodeFiles::below( $source ) : CodeFiles::one( $source );
		if ( [] === $files ) {
			/* translators: %s: directory below wp-content. */
			throw Failure::because( ErrorCode::MountSourceInvalid, Sentence::of( __( '%s has no file that is copied to a browser sandbox: links, files above 16 MB and files that may hold credentials or server settings are left out.', 'codebox' ), $target ) );
		}
		return [
			'target'  => $target,
			'path'    => self::CONTENT . $target,
			'archive' => $this->writer->store( $files ),
		];
	}
}
