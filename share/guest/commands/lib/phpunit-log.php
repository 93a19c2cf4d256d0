<?php
/**
 * Reads test results from PHPUnit's logs.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Collects the results in the logs of one or more PHPUnit runs, up to size limits.
 */
final class Phpunit_Log {
	/** Maximum size of a log, in bytes. */
	private const BYTES = 32 * 1024 * 1024;
	/** Maximum number of listed tests. */
	private const TESTS = 2000;
	/** Maximum number of reported failures. */
	private const FAILURES = 200;
	/** Size limit of a failure message, in bytes. */
	private const MESSAGE = 4000;

	/** Number of PHPUnit runs that left no complete log. */
	public int $missing = 0;

	/**
	 * Number of tests by result.
	 *
	 * @var array<string,int>
	 */
	private array $counts = array(
		'total'   => 0,
		'passed'  => 0,
		'failed'  => 0,
		'skipped' => 0,
		'unknown' => 0,
	);

	/** Number of assertions in all tests together. */
	private int $assertions = 0;

	/**
	 * Test counts by suite (test class).
	 *
	 * @var array<string,array<string,mixed>>
	 */
	private array $suites = array();

	/**
	 * Failures for the result, up to the limit.
	 *
	 * @var list<array<string,mixed>>
	 */
	private array $failures = array();

	/**
	 * Names of the tests that PHPUnit lists without running them.
	 *
	 * @var list<string>
	 */
	private array $names = array();

	/**
	 * Number of tests that PHPUnit lists, by class.
	 *
	 * @var array<string,int>
	 */
	public array $classes = array();

	/**
	 * Creates the object.
	 *
	 * @param string $directory Working directory of PHPUnit.
	 */
	public function __construct( private readonly string $directory ) {}

	/**
	 * Adds the results of one PHPUnit log.
	 *
	 * @param string $file Path of the log.
	 */
	public function read( string $file ): void {
		$cases = $this->elements( $file, '//testcase' );
		foreach ( $cases ?? array() as $case ) {
			$problem = null;
			$skipped = false;
			foreach ( $case->childNodes as $child ) {
				if ( ! $child instanceof \DOMElement ) {
					continue;
				}
				if ( 'skipped' === $child->tagName ) {
					$skipped = true;
				} elseif ( in_array( $child->tagName, array( 'error', 'failure', 'warning' ), true ) ) {
					$problem = $problem ?? $child;
				}
			}
			$outcome = null !== $problem ? 'failed' : ( $skipped ? 'skipped' : 'passed' );
			$suite   = cut( $case->getAttribute( 'class' ) ?: 'tests', 300 );
			$name    = cut( $case->getAttribute( 'name' ), 300 );
			++$this->counts['total'];
			++$this->counts[ $outcome ];
			$this->assertions += (int) $case->getAttribute( 'assertions' );
			$this->suites[ $suite ] ??= array(
				'name'   => $suite,
				'status' => 'passed',
				'file'   => guest_path( $case->getAttribute( 'file' ) ),
				'tests'  => array(),
			);
			if ( 'failed' === $outcome ) {
				$this->suites[ $suite ]['status'] = 'failed';
			}
			if ( $this->counts['total'] <= self::TESTS ) {
				$this->suites[ $suite ]['tests'][] = array(
					'name'       => $name,
					'status'     => $outcome,
					'durationMs' => round( (float) $case->getAttribute( 'time' ) * 1000, 3 ),
				);
			}
			if ( null !== $problem && count( $this->failures ) < self::FAILURES ) {
				$this->failures[] = $this->failure( $suite, $name, $case, $problem );
			}
		}
	}

	/**
	 * Adds the tests that a list of PHPUnit names.
	 *
	 * @param string $file Path of the list.
	 */
	public function read_list( string $file ): void {
		foreach ( $this->elements( $file, '//testCaseMethod' ) ?? array() as $method ) {
			$class = $method->parentNode instanceof \DOMElement ? $method->parentNode->getAttribute( 'name' ) : '';
			$set   = $method->getAttribute( 'dataSet' );

			$this->classes[ $class ] = ( $this->classes[ $class ] ?? 0 ) + 1;
			$this->names[]           = cut( $class . '::' . $method->getAttribute( 'name' ) . ( '' === $set ? '' : ' ' . trim( $set ) ), 500 );
		}
	}

	/**
	 * Returns the results: {summary, suites, failures}.
	 *
	 * @return array<string,mixed>
	 */
	public function results(): array {
		return array(
			'summary'    => $this->counts,
			'assertions' => $this->assertions,
			'suites'     => array_slice( array_values( $this->suites ), 0, 500 ),
			'failures'   => $this->failures,
			'truncated'  => $this->counts['total'] > self::TESTS || $this->counts['failed'] > count( $this->failures ) || count( $this->suites ) > 500,
		);
	}

	/**
	 * Returns the tests that PHPUnit listed without running them.
	 *
	 * @return array{total: int, tests: list<string>, truncated: bool}
	 */
	public function discovered(): array {
		$names = $this->names;
		sort( $names, SORT_STRING );
		return array(
			'total'     => count( $names ),
			'tests'     => array_slice( $names, 0, self::TESTS ),
			'truncated' => count( $names ) > self::TESTS,
		);
	}

	/**
	 * Builds the row of one failure, with the line of the test that caused it.
	 *
	 * @param string      $suite   Name of the test class.
	 * @param string      $name    Name of the test.
	 * @param \DOMElement $case    Test case element.
	 * @param \DOMElement $problem Failure or error element.
	 * @return array<string,mixed>
	 */
	private function failure( string $suite, string $name, \DOMElement $case, \DOMElement $problem ): array {
		$text = trim( str_replace( root() . '/', '/', $problem->textContent ) );
		$file = guest_path( $case->getAttribute( 'file' ) );
		$line = (int) $case->getAttribute( 'line' );
		// The last location in the test's own file is the line of the assertion.
		if ( '' !== $file && preg_match_all( '~^' . preg_quote( $file, '~' ) . ':(\d+)$~m', $text, $found ) ) {
			$line = (int) end( $found[1] );
		}
		// PHPUnit begins the text with the name of the test.
		if ( str_starts_with( $text, $case->getAttribute( 'class' ) . '::' ) ) {
			$text = ltrim( substr( $text, strcspn( $text, "\n" ) ) );
		}
		$base = guest_path( $this->directory ) . '/';
		return array(
			'suite'   => $suite,
			'test'    => $name,
			'kind'    => $problem->tagName,
			'type'    => cut( $problem->getAttribute( 'type' ), 200 ),
			'file'    => str_starts_with( $file, $base ) ? substr( $file, strlen( $base ) ) : $file,
			'line'    => $line,
			'message' => plain_text( $text, self::MESSAGE ),
		);
	}

	/**
	 * Returns the elements of a log that an XPath expression selects; null when the log is not complete.
	 *
	 * @param string $file Path of the log.
	 * @param string $path XPath expression.
	 * @return ?list<\DOMElement>
	 */
	private function elements( string $file, string $path ): ?array {
		clearstatcache();
		$size     = (int) filesize( $file );
		$document = new \DOMDocument();
		libxml_use_internal_errors( true );
		if ( 0 === $size || $size > self::BYTES || ! $document->load( $file, LIBXML_NONET | LIBXML_PARSEHUGE ) ) {
			++$this->missing;
			return null;
		}
		return iterator_to_array( ( new \DOMXPath( $document ) )->query( $path ) ?: array(), false );
	}
}
