<?php
/**
 * Runs before each PHP script of a check. Makes test runners write a log, and linters a note that they read a file, into
 * the directory CODEBOX_CHECK_RECORD. `verdict.php` reads it after the check.
 *
 * An exit status of 0 does not show that a supervisor worked: code of a test or a bootstrap file may call exit().
 * PHPUnit writes its log at its normal end only.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

// This file replaces the prepended file of php.ini.
require_once dirname( __DIR__ ) . '/egress.php';

( static function (): void {
	$directory = (string) getenv( 'CODEBOX_CHECK_RECORD' );
	$arguments = $_SERVER['argv'] ?? array();
	if ( '' === $directory || 'cli' !== PHP_SAPI || ! isset( $arguments[0] ) ) {
		return;
	}
	$program = strtolower( basename( $arguments[0] ) );
	// Tests of these programs start PHPUnit, and expect it to fail; their own exit status is the result.
	$nested = static function (): void {
		putenv( 'CODEBOX_CHECK_RECORD' );
		unset( $_SERVER['CODEBOX_CHECK_RECORD'], $_ENV['CODEBOX_CHECK_RECORD'] );
	};
	if ( 1 === preg_match( '/^infection(?:\.phar)?$/D', $program ) ) {
		$nested();
		return;
	}
	if ( 1 !== preg_match( '/^(?:simple-)?(phpunit|pest|paratest|phpcs)(?:-[0-9.]+)?(?:\.phar)?$/D', $program, $found ) ) {
		return;
	}
	$is_linter = 'phpcs' === $found[1];
	foreach ( $arguments as $argument ) {
		$informs = $is_linter
			? '/^(?:-[hie]|--(?:help|version|config-[a-z]+|generator)(?:=.*)?)$/D'
			: '/^(?:-h|--(?:help|version|init|list-[a-z-]+|atleast-version|check-version|check-php-configuration|validate-configuration|generate-configuration|migrate-configuration|warm-coverage-cache)(?:=.*)?)$/D';
		if ( 1 === preg_match( $informs, $argument ) ) {
			return;
		}
	}
	is_dir( $directory ) || @mkdir( $directory, 0700 );
	$process = getmypid();
	$base    = sprintf( '%s/%d-%s', $directory, $process, bin2hex( random_bytes( 4 ) ) );
	if ( $is_linter ) {
		file_put_contents( "$base.json", json_encode( array( 'tool' => 'phpcs' ) ) );
		// Also runs in the processes that phpcs forks. The class represents one checked file.
		register_shutdown_function(
			static function () use ( $base ): void {
				if ( class_exists( 'PHP_CodeSniffer\Files\LocalFile', false ) || class_exists( 'PHP_CodeSniffer\Files\DummyFile', false ) ) {
					touch( "$base.files" );
				} elseif ( ! class_exists( 'PHP_CodeSniffer\Runner', false ) ) {
					@unlink( "$base.json" );
				}
			}
		);
		return;
	}
	$nested();
	// Returns the log that the project asks for, which is then used: PHPUnit accepts an option once only.
	$own = static function () use ( $arguments ): ?string {
		$configuration = null;
		foreach ( $arguments as $position => $argument ) {
			if ( 1 === preg_match( '/^--log-junit(?:=(.+))?$/D', $argument, $found ) ) {
				return $found[1] ?? $arguments[ $position + 1 ] ?? null;
			}
			if ( 1 === preg_match( '/^(?:-c|--configuration)(?:=(.+))?$/D', $argument, $found ) ) {
				$configuration = $found[1] ?? $arguments[ $position + 1 ] ?? null;
			}
		}
		if ( in_array( '--no-logging', $arguments, true ) || in_array( '--no-configuration', $arguments, true ) ) {
			return null;
		}
		$place = $configuration ?? '.';
		foreach ( is_dir( $place ) ? array( "$place/phpunit.xml", "$place/phpunit.dist.xml", "$place/phpunit.xml.dist" ) : array( $place ) as $file ) {
			if ( ! is_file( $file ) ) {
				continue;
			}
			if ( 1 === preg_match( '~<junit\s[^>]*outputFile="([^"]+)"|<log\s[^>]*type="junit"[^>]*target="([^"]+)"~', (string) file_get_contents( $file ), $found ) ) {
				$name = html_entity_decode( $found[2] ?? $found[1] );
				return str_starts_with( $name, '/' ) ? $name : dirname( (string) realpath( $file ) ) . "/$name";
			}
			break;
		}
		return null;
	};

	$log      = $own();
	$added    = array();
	$absolute = static fn ( string $path ): string => str_starts_with( $path, '/' ) ? $path : getcwd() . "/$path";
	if ( null === $log ) {
		$log = "$base.log";
		array_push( $added, '--log-junit', $log );
	} else {
		$log = $absolute( $log );
		// A log of an earlier run is no result of this one.
		is_file( $log ) && @unlink( $log );
	}
	if ( 'phpunit' === $found[1] && array() === preg_grep( '/^--log-teamcity(?:=|$)/', $arguments ) ) {
		array_push( $added, '--log-teamcity', "$base.progress" );
	}
	array_splice( $_SERVER['argv'], 1, 0, $added );
	$_SERVER['argc'] = count( $_SERVER['argv'] );
	$GLOBALS['argv'] = $_SERVER['argv'];
	$GLOBALS['argc'] = $_SERVER['argc'];
	$row             = array(
		'tool'      => 'phpunit',
		'directory' => (string) getcwd(),
	);
	file_put_contents( "$base.json", json_encode( $row ) );
	register_shutdown_function(
		static function () use ( $base, $process, $log ): void {
			if ( getmypid() !== $process ) {
				return;
			}
			if ( is_file( $log ) ) {
				copy( $log, "$base.xml" );
				return;
			}
			foreach ( get_declared_classes() as $class ) {
				if ( str_starts_with( $class, 'PHPUnit\\' ) ) {
					return;
				}
			}
			// A script with the name of a test runner, which is none.
			null === error_get_last() && @unlink( "$base.json" );
		}
	);
} )();
