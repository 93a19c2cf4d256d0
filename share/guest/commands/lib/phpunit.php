<?php
/**
 * Runs the tests of a plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/phpunit-run.php';
require_once __DIR__ . '/phpunit-dependencies.php';
require_once __DIR__ . '/phpunit-library.php';
require_once __DIR__ . '/environment.php';
require_once __DIR__ . '/network.php';
require_once __DIR__ . '/places.php';

/**
 * Returns whether this process must load WordPress, to activate plugins before the tests. Makes the site a
 * network first when the tests need one.
 */
function phpunit_needs_wordpress(): bool {
	try {
		$needs = 'wordpress' === Phpunit::mode( Entry::$arguments );
		if ( $needs && Entry::$arguments->truth( 'multisite', false ) ) {
			make_network();
		}
		return $needs;
	} catch ( Refusal $refusal ) {
		finish( static fn () => throw $refusal );
	}
}

/**
 * Finds the plugin, PHPUnit and the tests, and runs them.
 */
final class Phpunit {
	/** Working directory of PHPUnit. */
	private readonly string $directory;

	/** What loads WordPress before the tests: `wordpress`, `project` or `none`. */
	private readonly string $mode;

	/** Plugins and directories that the tests need. */
	private readonly Phpunit_Dependencies $dependencies;

	/** WordPress's test library; if there is one, it loads WordPress with tables of its own. Null without one. */
	private readonly ?Phpunit_Library $library;

	/** Directory in which the library is installed for these tests; '' without one. */
	private readonly string $installed;

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 */
	public function __construct( private readonly Arguments $arguments ) {
		$database = is_dir( rtrim( dirname( __DIR__, 5 ), '/' ) . '/wordpress/wp-content/database/mariadb' ) ? 'mysql' : 'sqlite';
		$wanted   = $arguments->word( 'database-type', array( 'sqlite', 'mysql' ), $database );
		if ( $wanted !== $database ) {
			$has = 'mysql' === $database ? 'WordPress of this guest is on MariaDB; leave the argument out, or the mysql service' : 'WordPress of this guest is on SQLite only; add a mysql service to the run (--service mysql, inputs.services), or leave the argument out';
			throw Refusal::unsupported( "database-type $wanted: $has" );
		}
		$this->mode = self::mode( $arguments );
		if ( 'none' === $this->mode && $arguments->truth( 'multisite', false ) ) {
			throw Refusal::input( 'multisite needs WordPress, but bootstrap-mode is none' );
		}
		$this->directory    = $this->directory();
		$this->dependencies = new Phpunit_Dependencies( $arguments );
		if ( 'none' === $this->mode && array() !== $this->dependencies->plugins || 'wordpress' !== $this->mode && array() !== $this->dependencies->loose ) {
			throw Refusal::input( "the plugins of dependency-mounts and dependency-plugins-json need a WordPress that loads them, but bootstrap-mode is {$this->mode}: use managed" );
		}
		// A project's bootstrap file finds the library of its own vendor directory itself.
		$wanted          = 'wordpress' === $this->mode || 'project' === $this->mode && '' !== $arguments->first( 'tests-dir' );
		$this->library   = $wanted ? Phpunit_Library::find( $arguments, array( $this->directory, ...array_map( static fn ( string $file ): string => dirname( $file, 2 ), array_values( $this->autoloaders() ) ) ) ) : null;
		$this->installed = $this->library?->install( $this->defines(), 'wordpress' === $this->mode ? $this->plugins() : $this->dependencies->plugins ) ?? '';
	}

	/**
	 * Returns the autoloaders that the caller names, by argument.
	 *
	 * @return array<string,string>
	 */
	private function autoloaders(): array {
		$named = array();
		foreach ( array( 'autoload-file', 'project-autoload-file' ) as $name ) {
			if ( '' !== $this->arguments->first( $name ) ) {
				$named[ $name ] = file_at( $name, $this->arguments->first( $name ), $this->directory );
			}
		}
		return $named;
	}

	/**
	 * Returns what loads WordPress before the tests: `wordpress` (also called `managed`), `project` or `none`.
	 *
	 * @param Arguments $arguments Guest command arguments.
	 */
	public static function mode( Arguments $arguments ): string {
		$mode = $arguments->word( 'bootstrap-mode', array( 'managed', 'wordpress', 'project', 'none' ), 'managed' );
		return 'managed' === $mode ? 'wordpress' : $mode;
	}

	/**
	 * Runs the tests.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function run(): array {
		$plan = $this->plan();
		// The library's own site has the plugins active; they need not be active in the guest's site.
		if ( 'wordpress' === $this->mode && null === $this->library ) {
			$this->activate();
		}
		return ( new Phpunit_Run( $plan ) )->document();
	}

	/**
	 * Returns the working directory: cwd, else the plugin, else the first mount.
	 */
	private function directory(): string {
		if ( '' !== $this->arguments->first( 'cwd' ) ) {
			return directory_at( 'cwd', $this->arguments->first( 'cwd' ) );
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
			$path = (string) ( $mount['target'] ?? '' );
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
		$slug = $this->arguments->first( 'plugin-slug' );
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
		foreach ( $this->plugins() as $file ) {
			$answer = activate_plugin( $file );
			if ( is_wp_error( $answer ) && 'unexpected_output' !== $answer->get_error_code() ) {
				throw Refusal::failed( "WordPress could not activate $file: " . cut( wp_strip_all_tags( $answer->get_error_message() ), 500 ) );
			}
		}
	}

	/**
	 * Returns the main files of the dependencies and of the plugin, relative to the plugins directory.
	 *
	 * @return list<string>
	 */
	private function plugins(): array {
		$plugins = $this->dependencies->plugins;
		$slug    = $this->slug();
		if ( '' !== $slug ) {
			$plugins[] = Phpunit_Dependencies::plugin( $slug ) ?? throw ( is_dir( root() . '/wordpress/wp-content/plugins/' . $slug )
				? Refusal::failed( "$slug has no file with a plugin's header, so WordPress cannot activate it; use bootstrap-mode=none or project" )
				: Refusal::input( "there is no plugin $slug below wp-content/plugins of this guest; mount it there" ) );
		}
		return $plugins;
	}

	/**
	 * Builds the plan of the test run.
	 *
	 * @return array<string,mixed> Plan {program, directory, defines, server, files, plugins, arguments, targets,
	 *   environment, discovery, shard}.
	 */
	private function plan(): array {
		$named = $this->autoloaders();
		// The autoloader of the project's code is loaded, but its directory is not searched for PHPUnit.
		$project  = 'project' === $this->arguments->word( 'autoload-file-role', array( 'phpunit', 'harness', 'project' ), 'phpunit' );
		$searched = $project ? array_diff_key( $named, array( 'autoload-file' => 0 ) ) : $named;
		$files    = array_map( fn ( string $name ): string => file_at( 'preload-files-json', $name, $this->directory ), $this->arguments->texts( 'preload-files-json' ) );
		if ( 'wordpress' === $this->mode && null !== $this->library ) {
			$files[] = $this->installed . '/includes/functions.php';
		} elseif ( 'wordpress' === $this->mode ) {
			$files[] = root() . '/wordpress/wp-load.php';
			array_push( $files, ...$this->dependencies->loose );
		}
		array_push( $files, ...$this->dependencies->autoloaders, ...array_values( $named ) );
		foreach ( $this->arguments->texts( 'bootstrap-files-json' ) as $name ) {
			$files[] = file_at( 'bootstrap-files-json', $name, $this->directory );
		}
		return array(
			'program'     => phpunit_program( array( $this->directory, ...array_map( static fn ( string $file ): string => dirname( $file, 2 ), array_values( $searched ) ) ) ),
			'directory'   => $this->directory,
			'defines'     => $this->defines(),
			'server'      => 'wordpress' === $this->mode && null === $this->library ? array(
				'HTTP_HOST'       => 'localhost',
				'SERVER_NAME'     => 'localhost',
				'SERVER_PROTOCOL' => 'HTTP/1.1',
				'REQUEST_METHOD'  => 'GET',
				'REQUEST_URI'     => '/',
				'REMOTE_ADDR'     => '127.0.0.1',
			) : array(),
			'files'       => $files,
			'plugins'     => 'project' === $this->mode ? $this->dependencies->plugins : array(),
			'arguments'   => array( ...$this->configuration(), ...$this->further() ),
			'targets'     => $this->targets(),
			'environment' => $this->environment(),
			'discovery'   => $this->arguments->truth( 'discovery-only', false ),
			'shard'       => Phpunit_Shard::of( $this->arguments ),
		);
	}

	/**
	 * Returns PHPUnit's arguments for its configuration and bootstrap file.
	 *
	 * @return list<string>
	 */
	private function configuration(): array {
		$list = array( '--colors=never', '--do-not-cache-result' );
		$file = configuration_file( $this->arguments, $this->directory );
		if ( null !== $file ) {
			array_push( $list, '--configuration', $file );
		} elseif ( ! $this->arguments->truth( 'phpunit-xml-default', true ) ) {
			$list[] = '--no-configuration';
		}
		$bootstrap = $this->arguments->first( 'project-bootstrap' );
		if ( '' !== $bootstrap && 'project' !== $this->mode ) {
			throw Refusal::input( "project-bootstrap needs bootstrap-mode=project, but it is {$this->mode}" );
		}
		if ( 'project' !== $this->mode ) {
			array_push( $list, '--bootstrap', null !== $this->library ? $this->installed . '/includes/bootstrap.php' : __DIR__ . '/phpunit-nothing.php' );
		} elseif ( '' !== $bootstrap ) {
			array_push( $list, '--bootstrap', file_at( 'project-bootstrap', $bootstrap, $this->directory ) );
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
		$root  = $this->arguments->first( 'test-root' );
		$base  = '' === $root ? $this->directory : directory_at( 'test-root', $root, $this->directory );
		$given = array_filter( array( 'code', 'code-file', 'test-file', 'changed-tests-json' ), fn ( string $name ): bool => ! in_array( $this->arguments->first( $name ), array( '', '[]' ), true ) );
		if ( count( $given ) > 1 ) {
			throw Refusal::input( 'give only one of ' . implode( ', ', $given ) );
		}
		switch ( reset( $given ) ) {
			case 'code':
				return array( test_from_code( $this->arguments->text( 'code' ) ) );
			case 'code-file':
			case 'test-file':
				$name = (string) reset( $given );
				return array( file_at( $name, $this->arguments->first( $name ), $base ) );
			case 'changed-tests-json':
				return changed_tests( $this->arguments, fn ( string $file ): string => file_at( 'changed-tests-json', $file, $base ) );
			default:
		}
		$directory = $this->arguments->first( 'tests-dir' );
		if ( '' !== $directory && 'project' !== $this->mode && place_at( $directory, $this->directory ) !== $this->library?->found ) {
			return array( directory_at( 'tests-dir', $directory, $base ) );
		}
		if ( null !== configuration_file( $this->arguments, $this->directory ) || $this->arguments->truth( 'phpunit-xml-default', true ) && has_configuration( $this->directory ) ) {
			return array( null );
		}
		foreach ( array( $base . '/tests', $base . '/test' ) as $directory ) {
			if ( is_dir( $directory ) ) {
				return array( $directory );
			}
		}
		if ( '' !== $root ) {
			return array( $base );
		}
		throw Refusal::input( 'there are no tests: neither phpunit.xml(.dist) nor tests/ in ' . guest_path( $this->directory ) . '; give test-file, tests-dir or phpunit-xml' );
	}

	/**
	 * Returns the constants that the caller wants to be defined as in wp-config.php.
	 *
	 * @return array<string,mixed>
	 */
	private function defines(): array {
		if ( 'none' === $this->mode && array() !== $this->arguments->object( 'wp-config-defines-json' ) ) {
			throw Refusal::input( 'wp-config-defines-json needs WordPress, but bootstrap-mode is none' );
		}
		$defines = config_defines( $this->arguments );
		// The bootstrap file of WordPress's test library installs a network if this constant is set.
		$network = ( 'project' === $this->mode || null !== $this->library ) && $this->arguments->truth( 'multisite', false );
		return $network ? $defines + array( 'WP_TESTS_MULTISITE' => true ) : $defines;
	}

	/**
	 * Returns the environment variables of the tests.
	 *
	 * @return array<string,string>
	 */
	private function environment(): array {
		$environment = environment_variables( $this->arguments );
		if ( 'project' === $this->mode && '' !== $this->arguments->first( 'tests-dir' ) ) {
			$environment['WP_TESTS_DIR'] = $this->installed ?: directory_at( 'tests-dir', $this->arguments->first( 'tests-dir' ), $this->directory );
			$environment['WP_CORE_DIR']  = root() . '/wordpress';
		}
		return $environment;
	}
}
