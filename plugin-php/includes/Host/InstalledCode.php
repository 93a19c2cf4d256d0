<?php
/**
 * Installed plugins and themes as directories.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Answers where a plugin or theme lives on the host and where the guest sees it.
 * A slug is looked up in what WordPress lists, never joined to a path.
 */
final class InstalledCode {

	public const PLUGIN_TARGET = '/wordpress/wp-content/plugins/';
	public const THEME_TARGET  = '/wordpress/wp-content/themes/';

	/**
	 * Plugins that have a directory: slug to canonical directory.
	 *
	 * @return array<string, string>
	 */
	public function plugins(): array {
		$plugins = [];
		foreach ( array_keys( $this->plugin_files() ) as $file ) {
			$slug = explode( '/', (string) $file )[0];
			$real = str_contains( (string) $file, '/' ) ? realpath( WP_PLUGIN_DIR . '/' . $slug ) : false;
			if ( false !== $real && is_dir( $real ) ) {
				$plugins[ $slug ] = $real;
			}
		}
		ksort( $plugins );
		return $plugins;
	}

	/**
	 * Themes: stylesheet to canonical directory.
	 *
	 * @return array<string, string>
	 */
	public function themes(): array {
		$themes = [];
		foreach ( wp_get_themes( [ 'errors' => null ] ) as $slug => $theme ) {
			$real = realpath( $theme->get_stylesheet_directory() );
			if ( ! str_contains( (string) $slug, '/' ) && false !== $real && is_dir( $real ) ) {
				$themes[ (string) $slug ] = $real;
			}
		}
		ksort( $themes );
		return $themes;
	}

	/**
	 * Every directory of both.
	 *
	 * @return list<string>
	 */
	public function directories(): array {
		return array_values( array_unique( array_merge( array_values( $this->plugins() ), array_values( $this->themes() ) ) ) );
	}

	/**
	 * The mount of a plugin.
	 *
	 * @param string $slug Its directory name.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}
	 * @throws Failure `wp_codebox_mount_source_invalid` with the slugs there are.
	 */
	public function plugin_mount( string $slug ): array {
		$plugins = $this->plugins();
		if ( isset( $plugins[ $slug ] ) ) {
			return $this->mount( 'plugin', $slug, $plugins[ $slug ], self::PLUGIN_TARGET );
		}
		$file = str_ends_with( $slug, '.php' ) ? $slug : $slug . '.php';
		if ( isset( $this->plugin_files()[ $file ] ) ) {
			$name = basename( $file, '.php' );
			throw Failure::because(
				ErrorCode::MountSourceInvalid,
				sprintf( 'The plugin "%1$s" is a single file; a mount needs a directory: move %2$s to %1$s/%2$s in the plugin directory and try again.', $name, $file )
			);
		}
		throw $this->unknown( 'plugin', $slug, array_keys( $plugins ) );
	}

	/**
	 * The mount of a theme.
	 *
	 * @param string $slug Its directory name.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}
	 * @throws Failure `wp_codebox_mount_source_invalid` with the slugs there are.
	 */
	public function theme_mount( string $slug ): array {
		$themes = $this->themes();
		if ( isset( $themes[ $slug ] ) ) {
			return $this->mount( 'theme', $slug, $themes[ $slug ], self::THEME_TARGET );
		}
		throw $this->unknown( 'theme', $slug, array_keys( $themes ) );
	}

	/**
	 * The mount of the plugin or theme that is, or holds, a directory.
	 *
	 * @param string $directory A path.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}|null
	 */
	public function mount_of( string $directory ): ?array {
		$real = realpath( $directory );
		if ( false === $real ) {
			return null;
		}
		foreach ( $this->plugins() as $slug => $root ) {
			if ( Site::is_within( $real, [ $root ] ) ) {
				return $this->mount( 'plugin', $slug, $root, self::PLUGIN_TARGET );
			}
		}
		foreach ( $this->themes() as $slug => $root ) {
			if ( Site::is_within( $real, [ $root ] ) ) {
				return $this->mount( 'theme', $slug, $root, self::THEME_TARGET );
			}
		}
		return null;
	}

	/**
	 * The host directory a declared target stands for; null when it is no plugin or theme target.
	 *
	 * @param string $target Declared mount target.
	 * @throws Failure `wp_codebox_apply_conflict` when it is one but is installed no more.
	 */
	public function directory_of( string $target ): ?string {
		foreach ( [
			'plugin' => self::PLUGIN_TARGET,
			'theme'  => self::THEME_TARGET,
		] as $kind => $prefix ) {
			if ( ! str_starts_with( $target, $prefix ) ) {
				continue;
			}
			$slug  = substr( $target, strlen( $prefix ) );
			$known = 'plugin' === $kind ? $this->plugins() : $this->themes();
			if ( isset( $known[ $slug ] ) ) {
				return $known[ $slug ];
			}
			throw Failure::because(
				ErrorCode::ApplyConflict,
				sprintf( 'The %s "%s" that this change belongs to is not installed here any more; install it in the version the run started from.', $kind, $slug ),
				[],
				[ 'conflicts' => [ [ 'path' => $target, 'reason' => 'missing' ] ] ]
			);
		}
		return null;
	}

	/**
	 * Builds a mount row.
	 *
	 * @param string $kind   `plugin` or `theme`.
	 * @param string $slug   Slug.
	 * @param string $source Host directory.
	 * @param string $prefix Guest directory that holds all of its kind.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}
	 */
	private function mount( string $kind, string $slug, string $source, string $prefix ): array {
		return [
			'source'   => $source,
			'target'   => $prefix . $slug,
			'mode'     => 'readwrite',
			'metadata' => [
				'kind' => $kind,
				'slug' => $slug,
			],
		];
	}

	/**
	 * The failure for a slug that is not installed.
	 *
	 * @param string       $kind  `plugin` or `theme`.
	 * @param string       $slug  As given.
	 * @param list<string> $known Slugs there are.
	 */
	private function unknown( string $kind, string $slug, array $known ): Failure {
		return Failure::because(
			ErrorCode::MountSourceInvalid,
			sprintf( 'There is no %s "%s" on this site; give the name of its directory.', $kind, $slug ),
			[ [] === $known ? sprintf( 'No %s with a directory is installed.', $kind ) : 'Installed: ' . implode( ', ', $known ) . '.' ]
		);
	}

	/**
	 * What WordPress lists as plugins.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private function plugin_files(): array {
		if ( ! function_exists( 'get_plugins' ) ) {
			require_once ABSPATH . 'wp-admin/includes/plugin.php';
		}
		return get_plugins();
	}
}
