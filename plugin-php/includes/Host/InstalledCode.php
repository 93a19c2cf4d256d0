<?php
/**
 * Directories of installed plugins and themes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Returns where a plugin or theme is on the host and where the guest sees it. A slug is looked up in
 * WordPress's lists and never joined to a path.
 */
final class InstalledCode {

	public const PLUGIN_TARGET = '/wordpress/wp-content/plugins/';

	/** Directory in the guest by kind of code. */
	private const TARGETS = [
		'plugin' => self::PLUGIN_TARGET,
		'theme'  => '/wordpress/wp-content/themes/',
	];

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param GuardedDirectories $guarded Directories that a plugin or theme must not link to.
	 */
	public function __construct( private readonly GuardedDirectories $guarded = new GuardedDirectories() ) {}

	/**
	 * Returns plugins or themes with a directory of their own: canonical directory by slug or stylesheet.
	 *
	 * @param string $kind `plugin` or `theme`.
	 * @return array<string, string>
	 */
	public function installed( string $kind ): array {
		return array_filter( $this->found( $kind ), 'is_string' );
	}

	/**
	 * Returns the canonical directory of a plugin or theme; null when it is not installed.
	 *
	 * @param string $kind `plugin` or `theme`.
	 * @param string $slug Directory name of the plugin or theme.
	 * @throws Failure `wp_codebox_mount_denied` when the name is a link that leads elsewhere into the site.
	 */
	public function directory( string $kind, string $slug ): ?string {
		$directory = $this->found( $kind )[ $slug ] ?? null;
		if ( false === $directory ) {
			throw Failure::because(
				ErrorCode::MountDenied,
				/* translators: %s: name of a plugin or theme. */
				Sentence::of( __( '"%s" is a symbolic link into this site, the state directory or a system directory; link to another directory, or, if the directory is inside this site, let the operator add it to wp_codebox.mount_roots in php.ini.', 'codebox' ), $slug )
			);
		}
		return $directory;
	}

	/**
	 * Returns the installed plugins or themes: canonical directory by slug, or false for a symlink that must
	 * not be followed. A plain directory below the plugin or theme root is accepted. A symlink may point to
	 * another such directory, or to a directory entirely outside of the site.
	 *
	 * @param string $kind `plugin` or `theme`.
	 * @return array<string, string|false>
	 */
	private function found( string $kind ): array {
		$found = [];
		foreach ( 'plugin' === $kind ? $this->plugin_places() : $this->theme_places() as $slug => [ $home, $place ] ) {
			$real = realpath( $place );
			if ( false !== $real && is_dir( $real ) ) {
				$found[ $slug ] = $this->guarded->refuses( $real, dirname( $real ) === realpath( $home ) ? [ $real ] : [] ) ? false : $real;
			}
		}
		ksort( $found );
		return $found;
	}

	/**
	 * Returns plugins with a directory: parent directory and own directory by slug.
	 *
	 * @return array<string, array{string, string}>
	 */
	private function plugin_places(): array {
		$places = [];
		foreach ( array_keys( $this->plugin_files() ) as $file ) {
			if ( str_contains( (string) $file, '/' ) ) {
				$slug            = explode( '/', (string) $file )[0];
				$places[ $slug ] = [ WP_PLUGIN_DIR, WP_PLUGIN_DIR . '/' . $slug ];
			}
		}
		return $places;
	}

	/**
	 * Returns themes with a directory: parent directory and own directory by stylesheet.
	 *
	 * @return array<string, array{string, string}>
	 */
	private function theme_places(): array {
		$places = [];
		foreach ( wp_get_themes( [ 'errors' => null ] ) as $slug => $theme ) {
			if ( ! str_contains( (string) $slug, '/' ) ) {
				$places[ (string) $slug ] = [ $theme->get_theme_root(), $theme->get_stylesheet_directory() ];
			}
		}
		return $places;
	}

	/**
	 * Returns the directories of all plugins and themes.
	 *
	 * @return list<string>
	 */
	public function directories(): array {
		return array_values( array_unique( array_merge( array_values( $this->installed( 'plugin' ) ), array_values( $this->installed( 'theme' ) ) ) ) );
	}

	/**
	 * Returns the row that mounts a plugin into the guest.
	 *
	 * @param string $slug Directory name of the plugin or theme.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}
	 * @throws Failure `wp_codebox_mount_source_invalid` with the installed slugs.
	 */
	public function plugin_mount( string $slug ): array {
		$directory = $this->directory( 'plugin', $slug );
		if ( null !== $directory ) {
			return $this->mount( 'plugin', $slug, $directory );
		}
		$file = str_ends_with( $slug, '.php' ) ? $slug : $slug . '.php';
		if ( isset( $this->plugin_files()[ $file ] ) ) {
			$name = basename( $file, '.php' );
			throw Failure::because(
				ErrorCode::MountSourceInvalid,
				/* translators: 1: name of a plugin, 2: its file. */
				Sentence::of( __( 'The plugin "%1$s" is a single file; a mount needs a directory: move %2$s to %1$s/%2$s in the plugin directory and try again.', 'codebox' ), $name, $file )
			);
		}
		throw $this->unknown( 'plugin', $slug );
	}

	/**
	 * Returns the row that mounts a theme into the guest.
	 *
	 * @param string $slug Directory name of the plugin or theme.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}
	 * @throws Failure `wp_codebox_mount_source_invalid` with the installed slugs.
	 */
	public function theme_mount( string $slug ): array {
		$directory = $this->directory( 'theme', $slug );
		return null === $directory ? throw $this->unknown( 'theme', $slug ) : $this->mount( 'theme', $slug, $directory );
	}

	/**
	 * Returns the row that mounts the plugin or theme whose directory is the given directory or contains it; null when
	 * there is none.
	 *
	 * @param string $directory Path of a directory.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}|null
	 */
	public function mount_of( string $directory ): ?array {
		$real = realpath( $directory );
		if ( false === $real ) {
			return null;
		}
		foreach ( array_keys( self::TARGETS ) as $kind ) {
			foreach ( $this->installed( $kind ) as $slug => $root ) {
				if ( Site::is_within( $real, [ $root ] ) ) {
					return $this->mount( $kind, (string) $slug, $root );
				}
			}
		}
		return null;
	}

	/**
	 * Returns the origin of a directory, by which a later apply recognizes the same code. A plugin or theme is
	 * identified by slug, because a release may move its directory; any other directory by a keyed digest,
	 * because bundles contain no host path.
	 *
	 * @param string $directory Path of a directory.
	 * @return array<string, string>|null Null when the directory does not exist.
	 */
	public function origin( string $directory ): ?array {
		$real = realpath( $directory );
		if ( false === $real ) {
			return null;
		}
		$mount = $this->mount_of( $real );
		if ( null === $mount ) {
			return [
				'kind' => 'directory',
				'id'   => wp_hash( $real, 'auth', 'sha256' ),
			];
		}
		$path = substr( $real, strlen( $mount['source'] ) + 1 );
		return $mount['metadata'] + ( '' === $path ? [] : [ 'path' => $path ] );
	}

	/**
	 * Returns the host directory of the plugin or theme that a mount target names; null for any other target.
	 *
	 * @param string $target Mount target, a directory in the guest.
	 * @throws Failure `wp_codebox_apply_conflict` when the plugin or theme is not installed any more.
	 */
	public function directory_of( string $target ): ?string {
		foreach ( self::TARGETS as $kind => $prefix ) {
			if ( ! str_starts_with( $target, $prefix ) ) {
				continue;
			}
			$slug      = substr( $target, strlen( $prefix ) );
			$directory = $this->directory( $kind, $slug );
			if ( null !== $directory ) {
				return $directory;
			}
			throw self::gone( $slug, $target );
		}
		return null;
	}

	/**
	 * Builds the failure of a change to code that is not installed any more.
	 *
	 * @param string $name Name of the plugin or theme.
	 * @param string $path Its path in the guest.
	 */
	public static function gone( string $name, string $path ): Failure {
		return Failure::because(
			ErrorCode::ApplyConflict,
			/* translators: %s: name of a plugin or theme. */
			Sentence::of( __( '"%s", which this change belongs to, is not installed here any more; install it in the version the run started from.', 'codebox' ), $name ),
			[],
			[ 'conflicts' => [ [ 'path' => $path, 'reason' => 'missing' ] ] ]
		);
	}

	/**
	 * Builds the row that mounts a plugin or theme into the guest.
	 *
	 * @param string $kind   `plugin` or `theme`.
	 * @param string $slug   Slug of the plugin or theme.
	 * @param string $source Host directory.
	 * @return array{source: string, target: string, mode: string, metadata: array<string, string>}
	 */
	private function mount( string $kind, string $slug, string $source ): array {
		return [
			'source'   => $source,
			'target'   => self::TARGETS[ $kind ] . $slug,
			'mode'     => 'readwrite',
			'metadata' => [
				'kind' => $kind,
				'slug' => $slug,
			],
		];
	}

	/**
	 * Builds the failure for a slug that is not installed.
	 *
	 * @param string $kind `plugin` or `theme`.
	 * @param string $slug Slug as the caller gave it.
	 */
	private function unknown( string $kind, string $slug ): Failure {
		$known = array_keys( $this->installed( $kind ) );
		return Failure::because(
			ErrorCode::MountSourceInvalid,
			/* translators: %s: name of a plugin or theme. */
			Sentence::of( 'theme' === $kind ? __( 'There is no theme "%s" on this site; give the name of its directory.', 'codebox' ) : __( 'There is no plugin "%s" on this site; give the name of its directory.', 'codebox' ), $slug ),
			/* translators: %s: list of names, or "none". */
			[ Sentence::of( __( 'Installed: %s.', 'codebox' ), [] === $known ? __( 'none', 'codebox' ) : implode( ', ', $known ) ) ]
		);
	}

	/**
	 * Returns WordPress's list of plugins.
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
