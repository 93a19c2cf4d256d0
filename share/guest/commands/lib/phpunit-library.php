<?php
/**
 * Finds WordPress's test library, whose base class is `WP_UnitTestCase`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/places.php';

/**
 * The library in `tests-dir`, in the directory of the variable WP_TESTS_DIR, in the plugin's vendor directory or at a usual place.
 */
final class Phpunit_Library {
	/** Where the library is below a directory that contains it. */
	private const PACKAGES = array( 'vendor/wp-phpunit/wp-phpunit', 'tests/phpunit' );
	/** Where the library is in a guest if neither the plugin nor the caller has it. */
	private const USUAL = array( '/wordpress-tests-lib', '/workspace/wordpress-tests-lib', '/tmp/wordpress-tests-lib' );

	/** Name of the copy in the directory of temporary files; the usual name, which bootstrap files of projects try. */
	private const COPY = '/wordpress-tests-lib';

	/**
	 * Creates the object.
	 *
	 * @param string $found     Directory with `includes/bootstrap.php`.
	 * @param string $polyfills Directory of the package yoast/phpunit-polyfills; '' when there is none.
	 */
	private function __construct( public readonly string $found, private readonly string $polyfills ) {}

	/**
	 * Finds the library; null when there is none.
	 *
	 * @param Arguments    $arguments Guest command arguments tests-dir, env-json.
	 * @param list<string> $vendors   Directories with a vendor directory, most important first.
	 */
	public static function find( Arguments $arguments, array $vendors ): ?self {
		$tests       = $arguments->first( 'tests-dir' );
		$variable    = $arguments->object( 'env-json' )['WP_TESTS_DIR'] ?? getenv( 'WP_TESTS_DIR' );
		$directories = array();
		if ( '' !== $tests ) {
			$directories[] = place_at( $tests, $vendors[0] ?? '' );
		}
		if ( is_string( $variable ) && '' !== $variable ) {
			$directories[] = place_at( $variable, '' );
		}
		foreach ( $vendors as $vendor ) {
			foreach ( self::PACKAGES as $package ) {
				$directories[] = "$vendor/$package";
			}
		}
		foreach ( self::USUAL as $usual ) {
			$directories[] = root() . $usual;
		}
		foreach ( array_filter( $directories ) as $directory ) {
			if ( is_file( "$directory/includes/bootstrap.php" ) && is_file( "$directory/includes/functions.php" ) ) {
				return new self( $directory, self::polyfills( array( ...$vendors, $directory ) ) );
			}
		}
		return null;
	}

	/**
	 * Copies the library to a directory of its own, with a configuration for this guest beside it, and returns the
	 * directory. The configuration has the constants, because a test in a process of its own lacks those of this process.
	 *
	 * @param array<string,mixed> $defines Further constants.
	 * @param list<string>        $plugins Plugins that are active on the library's site.
	 */
	public function install( array $defines, array $plugins ): string {
		$copy = sys_get_temp_dir() . self::COPY;
		if ( $copy === $this->found || ! is_dir( $copy ) && ! mkdir( $copy, 0700 ) ) {
			$copy = sys_get_temp_dir() . self::COPY . '-' . bin2hex( random_bytes( 6 ) );
			mkdir( $copy, 0700 );
		}
		self::copy( "$this->found/includes", "$copy/includes" );
		foreach ( scandir( $this->found ) ?: array() as $name ) {
			if ( ! in_array( $name, array( '.', '..', 'includes', 'wp-tests-config.php' ), true ) && ! file_exists( "$copy/$name" ) ) {
				symlink( "$this->found/$name", "$copy/$name" );
			}
		}
		if ( '' !== $this->polyfills ) {
			$defines += array( 'WP_TESTS_PHPUNIT_POLYFILLS_PATH' => $this->polyfills );
		}
		$lines = '';
		foreach ( $defines as $name => $value ) {
			$lines .= sprintf( "defined( %s ) || define( %s, %s );\n", ...array_map( static fn ( mixed $one ): string => var_export( $one, true ), array( $name, $name, $value ) ) );
		}
		if ( array() !== $plugins ) {
			$lines .= "\$GLOBALS['wp_tests_options'] = array( 'active_plugins' => " . var_export( $plugins, true ) . " );\n";
		}
		file_put_contents( "$copy/wp-tests-config.php", "<?php\n{$lines}require " . var_export( __DIR__ . '/core-tests-config.php', true ) . ";\n" );
		return $copy;
	}

	/**
	 * Copies the files of a directory.
	 *
	 * @param string $from Directory to copy.
	 * @param string $to   New directory.
	 */
	private static function copy( string $from, string $to ): void {
		is_dir( $to ) || mkdir( $to, 0700 );
		foreach ( scandir( $from ) ?: array() as $name ) {
			if ( '.' !== $name && '..' !== $name ) {
				is_dir( "$from/$name" ) ? self::copy( "$from/$name", "$to/$name" ) : copy( "$from/$name", "$to/$name" );
			}
		}
	}

	/**
	 * Returns the directory of the polyfills of PHPUnit, which the library needs; '' when there is none.
	 *
	 * @param list<string> $places Directories with a vendor directory.
	 */
	private static function polyfills( array $places ): string {
		foreach ( $places as $place ) {
			if ( is_file( "$place/vendor/yoast/phpunit-polyfills/phpunitpolyfills-autoload.php" ) ) {
				return "$place/vendor/yoast/phpunit-polyfills";
			}
		}
		return '';
	}
}
