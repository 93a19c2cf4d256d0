<?php
/**
 * Runs the tests of a plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/phpunit-run.php';
require_once __DIR__ . '/places.php';

/**
 * Finds the plugin, PHPUnit and the tests, and runs them.
 */
final class Phpunit {
	/** Maximum number of test files in one call. */
	private const FILES = 50;

	/** Working directory of PHPUnit. */
	private readonly string $directory;

	/** What loads WordPress before the tests: `wordpress`, `project` or `none`. */
	private readonly string $mode;

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 */
	public function __construct( private readonly Arguments $arguments ) {
		network_as_asked( $arguments );
		if ( 'sqlite' !== $arguments->text( 'database-type', 'sqlite' ) ) {
			throw Refusal::unsupported( sprintf( 'database-type %s: this guest has SQLite only; leave the argument out', Arguments::shown( $arguments->text( 'database-type' ) ) ) );
		}
		$this->mode      = $arguments->word( 'bootstrap-mode', array( 'wordpress', 'project', 'none' ), 'wordpress' );
		$this->directory = $this->directory();
	}

	/**
	 * Runs the tests.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function run(): array {
		$plan = $this->plan();
		if ( 'wordpress' === $this->mode ) {
			$this->activate();
		}
		return ( new Phpunit_Run( $plan ) )->document();
	}

	/**
	 * Returns the working directory: cwd, else the plugin, else the first mount.
	 */
	private function directory(): string {
		if ( $this->arguments->has( 'cwd' ) ) {
			return directory_at( 'cwd', $this->arguments->text( 'cwd' ) );
		}
		$slug = $this->slug();
		if ( '' !== $slug ) {
			foreach ( array( '/wordpress/wp-content/plugins/', '/workspace/' ) as $parent ) {
				if ( is_dir( root() . $parent . $slug ) ) {
					return root() . $parent . $slug;
				}
			}
			throw Refusal::input( "there is no plugin $slug in this guest; mount it at /wordpress/wp-content/plugins/$slug" );
		}
		foreach ( $this->arguments->mounts as $mount ) {
			$path = (string) ( $mount['workspace'] ?? $mount['target'] ?? '' );
			if ( '' !== $path && is_dir( root() . $path ) ) {
				return root() . $path;
			}
		}
		throw Refusal::input( 'no tests are selected: give plugin-slug or cwd, or mount a plugin' );
	}

	/**
	 * Returns the plugin's directory name; '' when none is given.
	 */
	private function slug(): string {
		$slug = $this->arguments->text( 'plugin-slug' );
		if ( '' !== $slug && 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/D', $slug ) ) {
			throw Refusal::input( sprintf( 'plugin-slug is %s, but must be the name of a directory below wp-content/plugins', Arguments::shown( $slug ) ) );
		}
		return $slug;
	}

	/**
	 * Activates the plugin, and the plugins that the caller names as its dependencies, as an administrator.
	 */
	private function activate(): void {
		wp_set_current_user( 1 );
		$slugs = array_map( 'basename', $this->arguments->texts( 'dependency-mounts' ) );
		if ( '' !== $this->slug() ) {
			$slugs[] = $this->slug();
		}
		foreach ( $slugs as $slug ) {
			$files = is_dir( WP_PLUGIN_DIR . '/' . $slug ) ? array_keys( get_plugins( '/' . $slug ) ) : array();
			if ( array() === $files ) {
				if ( $slug === $this->slug() && is_dir( WP_PLUGIN_DIR . '/' . $slug ) ) {
					throw Refusal::failed( "$slug has no file with a plugin's header, so WordPress cannot activate it; use bootstrap-mode=none or project" );
				}
				throw Refusal::input( "there is no plugin $slug below wp-content/plugins of this guest; mount it there" );
			}
			$answer = activate_plugin( $slug . '/' . $files[0] );
			if ( is_wp_error( $answer ) && 'unexpected_output' !== $answer->get_error_code() ) {
				throw Refusal::failed( "WordPress could not activate $slug: " . cut( wp_strip_all_tags( $answer->get_error_message() ), 500 ) );
			}
		}
	}

	/**
	 * Builds the plan of the test run.
	 *
	 * @return array<string,mixed> Plan {program, directory, defines, server, files, arguments, targets,
	 *   environment, discovery}.
	 */
	private function plan(): array {
		$files    = array();
		$autoload = array_values( array_filter( array_map( fn ( string $name ): ?string => $this->arguments->has( $name ) ? file_at( $name, $this->arguments->text( $name ), $this->directory ) : null, array( 'autoload-file', 'project-autoload-file' ) ) ) );
		if ( 'wordpress' === $this->mode ) {
			$files[] = root() . '/wordpress/wp-load.php';
		}
		array_push( $files, ...$autoload );
		foreach ( $this->arguments->texts( 'bootstrap-files-json' ) as $name ) {
			$files[] = file_at( 'bootstrap-files-json', $name, $this->directory );
		}
		return array(
			'program'     => phpunit_program( array_merge( array( $this->directory ), array_map( static fn ( string $file ): string => dirname( $file, 2 ), $autoload ) ) ),
			'directory'   => $this->directory,
			'defines'     => $this->defines(),
			'server'      => 'wordpress' === $this->mode ? array(
				'HTTP_HOST'       => 'localhost',
				'SERVER_NAME'     => 'localhost',
				'SERVER_PROTOCOL' => 'HTTP/1.1',
				'REQUEST_METHOD'  => 'GET',
				'REQUEST_URI'     => '/',
				'REMOTE_ADDR'     => '127.0.0.1',
			) : array(),
			'files'       => $files,
			'arguments'   => array( ...$this->configuration(), ...$this->further() ),
			'targets'     => $this->targets(),
			'environment' => $this->environment(),
			'discovery'   => $this->arguments->truth( 'discovery-only', false ),
		);
	}

	/**
	 * Returns PHPUnit's arguments for its configuration and bootstrap file.
	 *
	 * @return list<string>
	 */
	private function configuration(): array {
		if ( $this->arguments->has( 'phpunit-xml' ) ) {
			$list = array( '--colors=never', '--do-not-cache-result', '--configuration', file_at( 'phpunit-xml', $this->arguments->text( 'phpunit-xml' ), $this->directory ) );
		} else {
			$list = array( '--colors=never', '--do-not-cache-result' );
			if ( ! $this->arguments->truth( 'phpunit-xml-default', true ) ) {
				$list[] = '--no-configuration';
			}
		}
		if ( $this->arguments->has( 'project-bootstrap' ) && 'project' !== $this->mode ) {
			throw Refusal::input( "project-bootstrap needs bootstrap-mode=project, but it is {$this->mode}" );
		}
		if ( 'project' !== $this->mode ) {
			array_push( $list, '--bootstrap', __DIR__ . '/phpunit-nothing.php' );
		} elseif ( $this->arguments->has( 'project-bootstrap' ) ) {
			array_push( $list, '--bootstrap', file_at( 'project-bootstrap', $this->arguments->text( 'project-bootstrap' ), $this->directory ) );
		}
		return $list;
	}

	/**
	 * Returns the caller's arguments for PHPUnit; refuses those that the command sets itself.
	 *
	 * @return list<string>
	 */
	private function further(): array {
		$list = $this->arguments->texts( 'phpunit-args-json' );
		foreach ( $list as $argument ) {
			if ( 1 === preg_match( '/^(?:--(?:bootstrap|configuration|no-configuration|log-[a-z-]+|testdox-[a-z-]+|list-[a-z-]+|teamcity|prepend|include-path|atleast-version|generate-configuration|migrate-configuration|coverage-[a-z0-9-]+)|-c|-d|-h|--help|--version)(?:=|$)/', $argument ) ) {
				throw Refusal::input( sprintf( 'phpunit-args-json has %s, which the command sets itself or does not offer', Arguments::shown( $argument ) ) );
			}
		}
		return $list;
	}

	/**
	 * Returns the files or directories of the tests to run; PHPUnit accepts one at a time.
	 *
	 * @return list<?string> Null uses the configuration.
	 */
	private function targets(): array {
		$base  = $this->arguments->has( 'test-root' ) ? directory_at( 'test-root', $this->arguments->text( 'test-root' ), $this->directory ) : $this->directory;
		$given = array_filter( array( 'code', 'code-file', 'test-file', 'changed-tests-json' ), fn ( string $name ): bool => $this->arguments->has( $name ) );
		if ( count( $given ) > 1 ) {
			throw Refusal::input( 'give only one of ' . implode( ', ', $given ) );
		}
		switch ( reset( $given ) ) {
			case 'code':
				return array( test_from_code( $this->arguments->text( 'code' ) ) );
			case 'code-file':
			case 'test-file':
				$name = (string) reset( $given );
				return array( file_at( $name, $this->arguments->text( $name ), $base ) );
			case 'changed-tests-json':
				$files = $this->arguments->texts( 'changed-tests-json' );
				if ( array() === $files || count( $files ) > self::FILES ) {
					throw Refusal::input( sprintf( 'changed-tests-json must name 1 to %d files of tests', self::FILES ) );
				}
				return array_map( static fn ( string $file ): string => file_at( 'changed-tests-json', $file, $base ), $files );
			default:
		}
		if ( $this->arguments->has( 'tests-dir' ) && 'project' !== $this->mode ) {
			return array( directory_at( 'tests-dir', $this->arguments->text( 'tests-dir' ), $base ) );
		}
		$configured = $this->arguments->has( 'phpunit-xml' ) || $this->arguments->truth( 'phpunit-xml-default', true ) && ( is_file( $this->directory . '/phpunit.xml' ) || is_file( $this->directory . '/phpunit.xml.dist' ) );
		if ( $configured ) {
			return array( null );
		}
		foreach ( array( $base . '/tests', $base . '/test' ) as $directory ) {
			if ( is_dir( $directory ) ) {
				return array( $directory );
			}
		}
		if ( $this->arguments->has( 'test-root' ) ) {
			return array( $base );
		}
		throw Refusal::input( 'there are no tests: neither phpunit.xml(.dist) nor tests/ in ' . guest_path( $this->directory ) . '; give test-file, tests-dir or phpunit-xml' );
	}

	/**
	 * Returns the constants that the caller wants to be defined as in wp-config.php.
	 *
	 * @return array<string,scalar|null>
	 */
	private function defines(): array {
		if ( 'none' === $this->mode && array() !== $this->arguments->object( 'wp-config-defines-json' ) ) {
			throw Refusal::input( 'wp-config-defines-json needs WordPress, but bootstrap-mode is none' );
		}
		return config_defines( $this->arguments );
	}

	/**
	 * Returns the environment variables of the tests.
	 *
	 * @return array<string,string>
	 */
	private function environment(): array {
		$environment = array();
		foreach ( $this->arguments->object( 'env-json' ) as $name => $value ) {
			if ( 1 !== preg_match( '/^[A-Za-z_][A-Za-z0-9_]{0,99}$/D', (string) $name ) || ! is_scalar( $value ) || 1 === preg_match( '/^(?:CODEBOX_|LD_|PATH$|HOME$|TMPDIR$)/', (string) $name ) ) {
				throw Refusal::input( sprintf( 'env-json has %s, but names are like MY_SETTING (not PATH, HOME, TMPDIR, LD_… or CODEBOX_…) and values texts, numbers or truth values', Arguments::shown( $name ) ) );
			}
			$environment[ $name ] = is_bool( $value ) ? ( $value ? '1' : '0' ) : (string) $value;
		}
		if ( 'project' === $this->mode && $this->arguments->has( 'tests-dir' ) ) {
			$environment['WP_TESTS_DIR'] = directory_at( 'tests-dir', $this->arguments->text( 'tests-dir' ), $this->directory );
			$environment['WP_CORE_DIR']  = root() . '/wordpress';
		}
		return $environment;
	}
}
