<?php
/**
 * Reads PHPUnit's log in TeamCity's format, which PHPUnit writes while it runs.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Tests of a PHPUnit run that ended early: those that had finished, and those that had begun.
 */
final class Phpunit_Progress {
	/**
	 * Rows of class, test, file, result (`passed`, `failed`, `skipped`), message of a failure, and milliseconds.
	 *
	 * @var list<array{string, string, string, string, string, float}>
	 */
	public array $tests = array();

	/**
	 * Tests in which PHP ended.
	 *
	 * @var list<string>
	 */
	public array $interrupted = array();

	/**
	 * Reads a log.
	 *
	 * @param string $file  Path of the log; it may be missing.
	 * @param int    $bytes Maximum number of bytes that are read.
	 */
	public static function read( string $file, int $bytes ): self {
		$progress = new self();
		$running  = array();
		$text     = is_file( $file ) ? (string) file_get_contents( $file, false, null, 0, $bytes ) : '';
		preg_match_all( '/^##teamcity\[(test(?:Started|Failed|Ignored|Finished)) (.*)\]$/m', $text, $messages, PREG_SET_ORDER );
		foreach ( $messages as list( , $kind, $rest ) ) {
			preg_match_all( "/(\w+)='((?:[^'|]|\|.)*)'/s", $rest, $pairs );
			$values = array_map( self::unescaped( ... ), array_combine( $pairs[1], $pairs[2] ) );
			$name   = $values['name'] ?? '';
			if ( 'testStarted' === $kind ) {
				$place            = explode( '::', (string) preg_replace( '~^php_qn://~', '', $values['locationHint'] ?? '' ) );
				$running[ $name ] = array( ltrim( $place[1] ?? 'tests', '\\' ), $name, $place[0], 'passed', '', 0.0 );
			} elseif ( ! isset( $running[ $name ] ) ) {
				continue;
			} elseif ( 'testFailed' === $kind ) {
				$running[ $name ][3] = 'failed';
				$running[ $name ][4] = trim( ( $values['message'] ?? '' ) . "\n" . ( $values['details'] ?? '' ) );
			} elseif ( 'testIgnored' === $kind ) {
				$running[ $name ][3] = 'skipped';
			} else {
				$running[ $name ][5] = (float) ( $values['duration'] ?? 0 );
				$progress->tests[]   = $running[ $name ];
				unset( $running[ $name ] );
			}
		}
		foreach ( $running as list( $suite, $name, $path ) ) {
			$progress->interrupted[] = "$suite::$name";
			$progress->tests[]       = array( $suite, $name, $path, 'failed', 'PHP ended while this test ran: a fatal error or an exit; see output', 0.0 );
		}
		return $progress;
	}

	/**
	 * Returns a value of a message without its escapes.
	 *
	 * @param string $value Escaped value.
	 */
	private static function unescaped( string $value ): string {
		$breaks = array(
			'n' => "\n",
			'r' => "\r",
		);
		return (string) preg_replace_callback( '/\|(.)/s', static fn ( array $found ): string => $breaks[ $found[1] ] ?? $found[1], $value );
	}
}
