<?php
/**
 * Runs PHPUnit and reads its log.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/phpunit-log.php';
require_once __DIR__ . '/phpunit-shard.php';
require_once __DIR__ . '/places.php';

/** Maximum number of test files in one call. */
const TEST_FILES = 50;

/**
 * Returns the path of PHPUnit's program: the first one in the vendor directories, else the one on the PATH.
 *
 * @param list<string> $directories Directories with a vendor directory.
 */
function phpunit_program( array $directories ): string {
	foreach ( array_unique( $directories ) as $directory ) {
		foreach ( array( 'vendor/phpunit/phpunit/phpunit', 'vendor/bin/phpunit', 'phpunit/phpunit/phpunit' ) as $name ) {
			if ( is_file( "$directory/$name" ) && is_readable( "$directory/$name" ) ) {
				return "$directory/$name";
			}
		}
	}
	foreach ( explode( ':', (string) getenv( 'PATH' ) ) as $directory ) {
		if ( '' !== $directory && is_file( "$directory/phpunit" ) ) {
			return "$directory/phpunit";
		}
	}
	throw Refusal::unsupported( 'there is no PHPUnit in this guest: neither vendor/bin/phpunit in the plugin nor phpunit on the PATH; install it with composer in the plugin before you mount it, or name its autoloader with autoload-file' );
}

/**
 * Returns the constants that the caller wants to be defined as in wp-config.php.
 *
 * @param Arguments $arguments Guest command arguments with `wp-config-defines-json`.
 * @return array<string,mixed>
 */
function config_defines( Arguments $arguments ): array {
	$defines = $arguments->object( 'wp-config-defines-json' );
	foreach ( array_keys( $defines ) as $name ) {
		if ( 1 !== preg_match( '/^[A-Za-z_][A-Za-z0-9_]{0,99}$/D', (string) $name ) || in_array( strtolower( (string) $name ), array( 'true', 'false', 'null' ), true ) ) {
			throw Refusal::input( sprintf( 'wp-config-defines-json has %s, but names are like WP_DEBUG', Arguments::shown( $name ) ) );
		}
	}
	return $defines;
}

/**
 * Returns whether a directory has a configuration file that PHPUnit finds by itself.
 *
 * @param string $directory Directory on the file system.
 */
function has_configuration( string $directory ): bool {
	return array() !== array_filter( array( 'phpunit.xml', 'phpunit.dist.xml', 'phpunit.xml.dist' ), static fn ( string $name ): bool => is_file( "$directory/$name" ) );
}

/**
 * Returns the configuration file that the caller names; null when there is none. With `phpunit-xml-default`,
 * the named file is only a default, so a missing one is not an error.
 *
 * @param Arguments $arguments Guest command arguments phpunit-xml, phpunit-xml-default.
 * @param string    $base      Base directory of a relative path.
 */
function configuration_file( Arguments $arguments, string $base ): ?string {
	$named = $arguments->first( 'phpunit-xml' );
	$place = '' === $named ? null : place_at( $named, $base );
	if ( '' === $named || $arguments->truth( 'phpunit-xml-default', false ) && ( null === $place || ! is_file( $place ) ) ) {
		return null;
	}
	return file_at( 'phpunit-xml', $named, $base );
}

/**
 * Returns the changed test files that the caller names.
 *
 * @param Arguments                $arguments Guest command arguments with `changed-tests-json`.
 * @param callable(string): string $place     Converts a path to one on the file system.
 * @return list<string>
 */
function changed_tests( Arguments $arguments, callable $place ): array {
	$files = $arguments->texts( 'changed-tests-json' );
	if ( count( $files ) > TEST_FILES || in_array( '', array_map( 'trim', $files ), true ) ) {
		throw Refusal::input( sprintf( 'changed-tests-json must be a list of at most %d paths of tests, none of them empty', TEST_FILES ) );
	}
	return array_map( $place, $files );
}

/**
 * Writes the test code that the caller passed to a file named after its class, as PHPUnit requires. Code
 * without a class is the body of one test method.
 *
 * @param string $code PHP code, with or without the opening tag.
 */
function test_from_code( string $code ): string {
	if ( 1 !== preg_match( '/^\s*(?:<\?php\s+)?(?:(?:final|abstract|readonly)\s+)*class\s+([A-Za-z_][A-Za-z0-9_]*)/m', $code, $found ) ) {
		$body  = (string) preg_replace( '/^\s*<\?php\b|\?>\s*$/', '', $code );
		$code  = "final class CodeTest extends PHPUnit\\Framework\\TestCase {\n\tpublic function test_code(): void {\n$body\n\t}\n}\n";
		$found = array( 1 => 'CodeTest' );
	}
	$directory = sys_get_temp_dir() . '/phpunit-' . bin2hex( random_bytes( 6 ) );
	mkdir( $directory, 0700 );
	$file = "$directory/{$found[1]}.php";
	file_put_contents( $file, ( str_starts_with( ltrim( $code ), '<?php' ) ? '' : "<?php\n" ) . $code );
	return $file;
}

/**
 * One or more runs of PHPUnit with a combined result.
 */
final class Phpunit_Run {
	/** Maximum number of output bytes reported from the beginning and from the end. */
	private const SHOWN = 32768;

	/**
	 * Creates the object.
	 *
	 * @param array<string,mixed> $plan Plan: {program, directory, defines, server, files, plugins?, arguments,
	 *   targets, environment, discovery, shard?}.
	 */
	public function __construct( private readonly array $plan ) {}

	/**
	 * Runs PHPUnit on all targets and returns the combined result.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function document(): array {
		$plan_file = (string) tempnam( sys_get_temp_dir(), 'phpunit-' );
		file_put_contents( $plan_file, json_encode( array_intersect_key( $this->plan, array_flip( array( 'defines', 'server', 'files', 'plugins' ) ) ) ) );
		$start  = hrtime( true );
		$log    = new Phpunit_Log( $this->plan['directory'] );
		$status = 0;
		$output = '';
		try {
			foreach ( $this->parts( $plan_file, $log ) as list( $target, $filter ) ) {
				list( $code, $text ) = $this->once( $target, $plan_file, $log, $filter );

				$status  = max( $status, $code );
				$output .= $text;
			}
		} finally {
			unlink( $plan_file );
		}
		$document = array(
			'schema'     => 'wp-codebox/test-results/v1',
			'status'     => 'failed',
			'runner'     => array(
				'name'    => 'phpunit',
				'program' => guest_path( $this->plan['program'] ),
			) + ( 1 === preg_match( '/^PHPUnit (\d+\.\d+\.\d+)/m', $output, $found ) ? array( 'version' => $found[1] ) : array() ),
			'exitCode'   => $status,
			'durationMs' => round( ( hrtime( true ) - $start ) / 1e6, 3 ),
		);
		$document += $this->plan['discovery'] ? array( 'discovery' => true ) + $log->discovered() : $log->results();
		// Tests that were only listed have no result.
		$document += array(
			'summary' => array(
				'total'   => $document['total'] ?? 0,
				'passed'  => 0,
				'failed'  => 0,
				'skipped' => 0,
				'unknown' => $document['total'] ?? 0,
			),
			'suites'  => array(),
		);
		$document += isset( $this->plan['shard'] ) ? array( 'shard' => $this->plan['shard']->document() ) : array();
		$document += array( 'output' => plain_text( self::shortened( $output ), 3 * self::SHOWN ) );
		$raw       = write_artifact( '.wp-codebox-result.txt', mb_scrub( self::shortened( $output, 512 * 1024 ), 'UTF-8' ), 'test-results', 'text/plain' );

		$document['rawLogReferences'] = array(
			array(
				'kind' => 'test-results',
				'path' => $raw,
			),
		);
		$why = $this->why_failed( $status, $log );
		if ( null !== $why ) {
			throw Refusal::failed( $why, $document );
		}
		$document['status'] = 'passed';
		return $document;
	}

	/**
	 * Returns the reason why the tests did not pass; null when they did.
	 *
	 * @param int         $status Highest exit status.
	 * @param Phpunit_Log $log    Parsed logs.
	 */
	private function why_failed( int $status, Phpunit_Log $log ): ?string {
		if ( $this->plan['discovery'] && 0 === $log->missing ) {
			return 0 !== $status ? "PHPUnit ended with status $status while it listed the tests; see output" : ( 0 === $log->discovered()['total'] ? 'no tests were found' : null );
		}
		// A part of the tests may be empty, also because a group selects only tests of other parts.
		return $log->why_failed( $status, isset( $this->plan['shard'] ) );
	}

	/**
	 * Returns what to run: each target with the filter of the shard's classes; without a shard, no filter.
	 *
	 * @param string      $plan_file File with the plan for the prepended script.
	 * @param Phpunit_Log $log       Collects the log.
	 * @return list<array{?string, ?string}>
	 */
	private function parts( string $plan_file, Phpunit_Log $log ): array {
		if ( ! isset( $this->plan['shard'] ) ) {
			return array_map( static fn ( ?string $target ): array => array( $target, null ), $this->plan['targets'] );
		}
		$parts = array();
		foreach ( $this->plan['targets'] as $target ) {
			$listed              = new Phpunit_Log( $this->plan['directory'] );
			list( $code, $text ) = ( new self( array( 'discovery' => true ) + $this->plan ) )->once( $target, $plan_file, $listed );
			if ( 0 !== $code || $listed->missing > 0 ) {
				throw Refusal::failed( "PHPUnit ended with status $code while it listed the tests; see output", array( 'output' => plain_text( self::shortened( $text ), 3 * self::SHOWN ) ) );
			}
			foreach ( $this->plan['shard']->filters( $listed->classes ) as $filter ) {
				$parts[] = array( $target, $filter );
			}
		}
		return $parts;
	}

	/**
	 * Runs PHPUnit once and adds its log to the results.
	 *
	 * @param ?string     $target    File or directory of tests; null uses the configuration.
	 * @param string      $plan_file File with the plan for the prepended script.
	 * @param Phpunit_Log $log       Collects the log.
	 * @param ?string     $filter    Filter of the tests; null runs all.
	 * @return array{int, string} Exit status and output.
	 */
	private function once( ?string $target, string $plan_file, Phpunit_Log $log, ?string $filter = null ): array {
		$file    = (string) tempnam( sys_get_temp_dir(), 'junit-' );
		$running = "$file.progress";
		$command = array( PHP_BINARY, '-d', 'display_errors=stderr', '-d', 'memory_limit=' . ini_get( 'memory_limit' ), '-d', 'auto_prepend_file=' . __DIR__ . '/phpunit-prepend.php', $this->plan['program'], ...$this->plan['arguments'] );
		array_push( $command, ...( $this->plan['discovery'] ? array( '--list-tests-xml', $file ) : array( '--log-junit', $file, '--log-teamcity', $running ) ) );
		if ( null !== $filter ) {
			array_push( $command, '--filter', $filter );
		}
		if ( null !== $target ) {
			$command[] = $target;
		}
		$pipes   = array();
		$process = proc_open(
			$command,
			array( array( 'file', '/dev/null', 'r' ), array( 'pipe', 'w' ), array( 'redirect', 1 ) ),
			$pipes,
			$this->plan['directory'],
			array( 'CODEBOX_PHPUNIT_PLAN' => $plan_file ) + $this->plan['environment'] + getenv()
		);
		if ( ! is_resource( $process ) ) {
			throw Refusal::failed( 'PHPUnit could not be started' );
		}
		$head = '';
		$tail = '';
		while ( ! feof( $pipes[1] ) ) {
			$piece = (string) fread( $pipes[1], 65536 );
			$room  = max( 0, 256 * 1024 - strlen( $head ) );
			$head .= substr( $piece, 0, $room );
			$tail  = substr( $tail . substr( $piece, $room ), -256 * 1024 );
		}
		fclose( $pipes[1] );
		$status = proc_close( $process );
		$this->plan['discovery'] ? $log->read_list( $file ) : $log->read( $file, $running );
		$this->record( $file, $running );
		return array( $status < 0 ? 255 : $status, str_replace( root() . '/', '/', $head . $tail ) );
	}

	/**
	 * Moves the logs to the records of the check that this program is; deletes them if it is none.
	 *
	 * @param string $file     Path of the JUnit log.
	 * @param string $progress Path of the progress log.
	 */
	private function record( string $file, string $progress ): void {
		$directory = (string) getenv( 'CODEBOX_CHECK_RECORD' );
		if ( '' === $directory || $this->plan['discovery'] ) {
			array_map( unlink( ... ), array_filter( array( $file, $progress ), is_file( ... ) ) );
			return;
		}
		is_dir( $directory ) || mkdir( $directory, 0700 );
		$base = "$directory/" . basename( $file );
		file_put_contents( "$base.json", json_encode( array( 'tool' => 'phpunit', 'directory' => $this->plan['directory'] ) ) );
		rename( $file, "$base.xml" );
		is_file( $progress ) && rename( $progress, "$base.progress" );
	}

	/**
	 * Returns a text, or only its beginning and its end if it is longer than both.
	 *
	 * @param string $text  Text to shorten.
	 * @param int    $bytes Bytes of each part.
	 */
	private static function shortened( string $text, int $bytes = self::SHOWN ): string {
		return strlen( $text ) <= 2 * $bytes ? $text : mb_strcut( $text, 0, $bytes, 'UTF-8' ) . "\n[…]\n" . mb_strcut( $text, strlen( $text ) - $bytes, null, 'UTF-8' );
	}
}
