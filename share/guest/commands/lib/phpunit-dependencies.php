<?php
/**
 * Plugins and directories that the tests of a plugin need.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/places.php';

/**
 * Finds what `dependency-mounts` and `dependency-plugins-json` name, before WordPress is loaded.
 */
final class Phpunit_Dependencies {
	/** Guest directory of the plugins. */
	private const PLUGINS = '/wordpress/wp-content/plugins';

	/**
	 * Main files of plugins, relative to the plugins directory.
	 *
	 * @var list<string>
	 */
	public array $plugins = array();

	/**
	 * Autoloaders of directories that are not plugins; paths on the file system.
	 *
	 * @var list<string>
	 */
	public array $autoloaders = array();

	/**
	 * Main files of plugins outside the plugins directory, to be loaded after WordPress; paths on the file system.
	 *
	 * @var list<string>
	 */
	public array $loose = array();

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Guest command arguments dependency-mounts, dependency-plugins-json.
	 */
	public function __construct( private readonly Arguments $arguments ) {
		foreach ( $arguments->texts( 'dependency-mounts' ) as $path ) {
			$this->directory( $path );
		}
		foreach ( $arguments->json( 'dependency-plugins-json' ) as $row ) {
			$name = is_array( $row ) ? $row['pluginFile'] ?? $row['file'] ?? $row['plugin'] ?? $row['slug'] ?? null : $row;
			if ( ! is_string( $name ) || '' === trim( $name ) ) {
				throw Refusal::input( 'dependency-plugins-json must be a list of plugins: directories, main files, or {slug}' );
			}
			$this->plugins[] = self::plugin( trim( $name ) ) ?? throw Refusal::input( sprintf( 'there is no plugin %s below wp-content/plugins of this guest; mount it there', Arguments::shown( $name ) ) );
		}
		$this->plugins = array_values( array_unique( $this->plugins ) );
	}

	/**
	 * Returns the main file of a plugin, relative to the plugins directory; null when there is no such plugin.
	 *
	 * @param string $name Directory or main file below the plugins directory.
	 */
	public static function plugin( string $name ): ?string {
		$name  = trim( $name, '/' );
		$place = root() . self::PLUGINS . '/' . $name;
		if ( in_array( '..', explode( '/', $name ), true ) || str_contains( $name, "\0" ) ) {
			return null;
		}
		if ( is_file( $place ) ) {
			return $name;
		}
		$main = self::main_file( $place, basename( $name ) );
		return null === $main ? ( is_file( "$place.php" ) ? "$name.php" : null ) : $name . '/' . basename( $main );
	}

	/**
	 * Adds a directory that the tests need.
	 *
	 * @param string $path Directory of the guest, or the slug of a plugin.
	 */
	private function directory( string $path ): void {
		$inside = $this->in_plugins( $path );
		$plugin = null === $inside ? null : self::plugin( $inside );
		if ( null !== $plugin ) {
			$this->plugins[] = $plugin;
			return;
		}
		$place = place_at( $path, '' ) ?? root() . self::PLUGINS . '/' . $path;
		if ( is_file( "$place/vendor/autoload.php" ) ) {
			$this->autoloaders[] = "$place/vendor/autoload.php";
			return;
		}
		$main = self::main_file( $place, basename( $path ) );
		if ( null === $main ) {
			throw Refusal::input( sprintf( 'dependency-mounts names %s, which is neither a plugin nor a directory with vendor/autoload.php in this guest; mount it there', Arguments::shown( $path ) ) );
		}
		$this->loose[] = $main;
	}

	/**
	 * Returns a path relative to the plugins directory; null when it is elsewhere.
	 *
	 * @param string $path Directory of the guest, or the slug of a plugin.
	 */
	private function in_plugins( string $path ): ?string {
		if ( ! str_starts_with( $path, '/' ) ) {
			return $path;
		}
		foreach ( $this->arguments->mounts as $mount ) {
			if ( rtrim( $path, '/' ) === ( $mount['link'] ?? null ) ) {
				$path = (string) $mount['target'];
			}
		}
		return str_starts_with( $path, self::PLUGINS . '/' ) ? substr( $path, strlen( self::PLUGINS ) + 1 ) : null;
	}

	/**
	 * Returns the file of a directory that has a plugin's header; null when none has.
	 *
	 * @param string $place Directory on the file system.
	 * @param string $slug  Name of the file that is preferred.
	 */
	private static function main_file( string $place, string $slug ): ?string {
		$found = null;
		foreach ( glob( addcslashes( $place, '*?[]{}\\' ) . '/*.php' ) ?: array() as $file ) {
			$head = is_readable( $file ) ? (string) file_get_contents( $file, false, null, 0, 8192 ) : '';
			if ( 1 === preg_match( '/^[ \t\/*#@]*Plugin Name:/mi', $head ) && ( null === $found || basename( $file ) === "$slug.php" ) ) {
				$found = $file;
			}
		}
		return $found;
	}
}
