<?php
/**
 * Selects one of several equal parts of the tests.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Part N of M. The classes of a target are distributed by their number of tests; every part selects by the same rule, so
 * each class is in exactly one part, whichever sandbox computes it.
 */
final class Phpunit_Shard {
	/** Maximum number of parts. */
	private const PARTS = 64;
	/** Maximum size of one filter, in bytes; PHP cannot compile a much longer regular expression. */
	private const FILTER = 16000;

	/** Number of selected tests. */
	private int $tests = 0;

	/** Number of tests in all parts. */
	private int $of_tests = 0;

	/**
	 * Number of tests of each part in all targets together: with a count per target, files of one class would all go to
	 * the first part.
	 *
	 * @var array<int,int>
	 */
	private array $loads;

	/**
	 * Creates the object.
	 *
	 * @param int $number This part, from 1.
	 * @param int $parts  Number of parts.
	 */
	private function __construct( private readonly int $number, private readonly int $parts ) {
		$this->loads = array_fill( 1, $parts, 0 );
	}

	/**
	 * Reads the argument `shard`; null when it is not given.
	 *
	 * @param Arguments $arguments Guest command arguments.
	 */
	public static function of( Arguments $arguments ): ?self {
		$given = $arguments->first( 'shard' );
		if ( '' === $given ) {
			return null;
		}
		if ( 1 !== preg_match( '~^(\d{1,3})/(\d{1,3})$~D', $given, $found ) || (int) $found[1] < 1 || (int) $found[1] > (int) $found[2] || (int) $found[2] > self::PARTS ) {
			throw Refusal::input( sprintf( 'shard is %s, but must be like 2/8: a part from 1 to the number of parts, which is at most %d', Arguments::shown( $given ), self::PARTS ) );
		}
		foreach ( $arguments->texts( 'phpunit-args-json' ) as $argument ) {
			if ( 1 === preg_match( '/^--filter(?:=|$)/', $argument ) ) {
				throw Refusal::input( 'shard cannot be combined with --filter in phpunit-args-json, because PHPUnit takes one filter; use --group, or test files' );
			}
		}
		return new self( (int) $found[1], (int) $found[2] );
	}

	/**
	 * Returns PHPUnit filters that together select the classes of this part; none when it has no class.
	 *
	 * @param array<string,int> $classes Number of tests by class.
	 * @return list<string>
	 */
	public function filters( array $classes ): array {
		$this->of_tests += array_sum( $classes );
		uksort( $classes, static fn ( string $a, string $b ): int => array( -$classes[ $a ], $a ) <=> array( -$classes[ $b ], $b ) );
		$filters = array();
		$names   = array();
		$bytes   = 0;
		foreach ( $classes as $class => $count ) {
			$part = array_search( min( $this->loads ), $this->loads, true );

			$this->loads[ $part ] += $count;
			if ( $part !== $this->number ) {
				continue;
			}
			$name = preg_quote( (string) $class, '/' );
			if ( array() !== $names && $bytes + strlen( $name ) > self::FILTER ) {
				$filters[] = self::filter( $names );
				$names     = array();
				$bytes     = 0;
			}
			$names[]      = $name;
			$bytes       += strlen( $name ) + 1;
			$this->tests += $count;
		}
		return array() === $names ? $filters : array( ...$filters, self::filter( $names ) );
	}

	/**
	 * Returns the part for the result.
	 *
	 * @return array{index: int, count: int, tests: int, ofTests: int}
	 */
	public function document(): array {
		return array(
			'index'   => $this->number,
			'count'   => $this->parts,
			'tests'   => $this->tests,
			'ofTests' => $this->of_tests,
		);
	}

	/**
	 * Returns the filter that selects every test of these classes.
	 *
	 * @param list<string> $names Class names, quoted for a regular expression.
	 */
	private static function filter( array $names ): string {
		return '/^(?:' . implode( '|', $names ) . ')::/';
	}
}
