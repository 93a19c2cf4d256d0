<?php
/**
 * Reads test results from PHPUnit's logs.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/phpunit-progress.php';

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
	 * Tests in which a PHPUnit run ended.
	 *
	 * @var list<string>
	 */
	private array $interrupted = array();

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
	 * Adds the results of one PHPUnit run. Without a complete log, adds those in its progress log: what had finished,
	 * and the test that ran when PHP ended.
	 *
	 * @param string $file     Path of the JUnit log.
	 * @param string $progress Path of the log in TeamCity's format, which PHPUnit writes while it runs.
	 */
	public function read( string $file, string $progress ): void {
		$cases = $this->elements( $file, '//testcase' );
		if ( null === $cases ) {
			$this->read_progress( Phpunit_Progress::read( $progress, self::BYTES ) );
		}
		foreach ( $cases ?? array() as $case ) {
			$problem = null;
			$skipped = false;
			foreach ( $case->childNodes as $child ) {
				if ( ! $child instanceof \DOMElement ) {
					continue;
				}
				if ( 'skipped' === $child->tagName ) {
					$skipped = true;
				} elseif ( in_array( $child->tagName, array( 'error', 'failure' ), true ) && ! self::is_warning( $child ) ) {
					$problem = $problem ?? $child;
				}
			}
			$suite = $case->getAttribute( 'class' ) ?: 'tests';
			$name  = cut( $case->getAttribute( 'name' ), 300 );

			$this->assertions += (int) $case->getAttribute( 'assertions' );
			$this->add( $suite, $name, $case->getAttribute( 'file' ), null !== $problem ? 'failed' : ( $skipped ? 'skipped' : 'passed' ), (float) $case->getAttribute( 'time' ) * 1000 );
			if ( null !== $problem && count( $this->failures ) < self::FAILURES ) {
				$this->failures[] = $this->failure( cut( $suite, 300 ), $name, $case, $problem );
			}
		}
	}

	/**
	 * Adds the tests of a PHPUnit run that ended early.
	 *
	 * @param Phpunit_Progress $progress Its progress log.
	 */
	private function read_progress( Phpunit_Progress $progress ): void {
		array_push( $this->interrupted, ...$progress->interrupted );
		foreach ( $progress->tests as list( $suite, $name, $file, $outcome, $message, $milliseconds ) ) {
			$this->add( $suite, $name, $file, $outcome, $milliseconds );
			if ( 'failed' === $outcome && count( $this->failures ) < self::FAILURES ) {
				$line             = 1 === preg_match( '~^' . preg_quote( $file, '~' ) . ':(\d+)$~m', $message, $found ) ? (int) $found[1] : 0;
				$this->failures[] = $this->failure_row( cut( $suite, 300 ), cut( $name, 300 ), 'error', '', guest_path( $file ), $line, str_replace( root() . '/', '/', $message ) );
			}
		}
	}

	/**
	 * Returns whether PHPUnit logs a risky test as an error. Risky tests and warnings fail PHPUnit only if its settings say so;
	 * then its exit status reports it.
	 *
	 * @param \DOMElement $problem Element `error` or `failure`.
	 */
	private static function is_warning( \DOMElement $problem ): bool {
		return 1 === preg_match( '/^PHPUnit\\\\Framework\\\\(?:Risky|\w*CoveredCodeNotExecuted|MissingCovers|OutputError|UnintentionallyCoveredCode)/', $problem->getAttribute( 'type' ) );
	}

	/**
	 * Returns the reason why the tests did not pass; null when they did.
	 *
	 * @param ?int $status       Highest exit status of the PHPUnit runs; null when it is not known.
	 * @param bool $may_be_empty Whether no test needs to run.
	 */
	public function why_failed( ?int $status, bool $may_be_empty = false ): ?string {
		if ( $this->missing > 0 ) {
			$done  = $this->counts['total'] - count( $this->interrupted );
			$where = array() === $this->interrupted ? '' : ' in ' . implode( ', ', array_slice( $this->interrupted, 0, 5 ) );
			$with  = null === $status ? '' : " with status $status";
			return "PHPUnit ended$with$where before its log was complete: a fatal error, an exit or a bootstrap that failed; $done tests had finished; see output";
		}
		if ( $this->counts['failed'] > 0 ) {
			return sprintf( '%d of %d tests failed', $this->counts['failed'], $this->counts['total'] );
		}
		if ( 0 === $this->counts['total'] && ! $may_be_empty ) {
			return 'no tests ran; see output';
		}
		return 0 !== ( $status ?? 0 ) ? "PHPUnit ended with status $status; see output" : null;
	}

	/**
	 * Adds the result of one test.
	 *
	 * @param string $suite        Name of the test class.
	 * @param string $name         Name of the test.
	 * @param string $file         Path of the test's file.
	 * @param string $outcome      Result: `passed`, `failed` or `skipped`.
	 * @param float  $milliseconds Duration.
	 */
	private function add( string $suite, string $name, string $file, string $outcome, float $milliseconds ): void {
		$suite = cut( $suite, 300 );
		++$this->counts['total'];
		++$this->counts[ $outcome ];
		$this->suites[ $suite ] ??= array(
			'name'   => $suite,
			'status' => 'passed',
			'file'   => guest_path( $file ),
			'tests'  => array(),
		);
		if ( 'failed' === $outcome ) {
			$this->suites[ $suite ]['status'] = 'failed';
		}
		if ( $this->counts['total'] <= self::TESTS ) {
			$this->suites[ $suite ]['tests'][] = array(
				'name'       => $name,
				'status'     => $outcome,
				'durationMs' => round( $milliseconds, 3 ),
			);
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
	 * Returns the results: {summary, complete, assertions, suites, failures, truncated}.
	 *
	 * @return array<string,mixed>
	 */
	public function results(): array {
		return array(
			'summary'    => $this->counts,
			'complete'   => 0 === $this->missing,
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
		return $this->failure_row( $suite, $name, $problem->tagName, cut( $problem->getAttribute( 'type' ), 200 ), $file, $line, $text );
	}

	/**
	 * Builds the row of one failure.
	 *
	 * @param string $suite Name of the test class.
	 * @param string $name  Name of the test.
	 * @param string $kind  `error` or `failure`.
	 * @param string $type  Class of the exception; '' when it is not known.
	 * @param string $file  Guest path of the test's file.
	 * @param int    $line  Line; 0 when it is not known.
	 * @param string $text  Message.
	 * @return array<string,mixed>
	 */
	private function failure_row( string $suite, string $name, string $kind, string $type, string $file, int $line, string $text ): array {
		$base = guest_path( $this->directory ) . '/';
		return array(
			'suite'   => $suite,
			'test'    => $name,
			'kind'    => $kind,
			'type'    => $type,
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
		$size     = is_file( $file ) ? (int) filesize( $file ) : 0;
		$document = new \DOMDocument();
		libxml_use_internal_errors( true );
		if ( 0 === $size || $size > self::BYTES || ! $document->load( $file, LIBXML_NONET | LIBXML_PARSEHUGE ) ) {
			++$this->missing;
			return null;
		}
		return iterator_to_array( ( new \DOMXPath( $document ) )->query( $path ) ?: array(), false );
	}
}
