<?php
/**
 * Measures how long the calls of WordPress hooks take.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/listing.php';

/**
 * Measures each call of a hook that has callbacks: the time of all its callbacks together. Stops after a
 * number of calls.
 */
final class Hook_Times {
	/**
	 * Calls that have not ended, outermost first: {hook, start time, time in nested calls}, in nanoseconds.
	 *
	 * @var list<array{string, int, int}>
	 */
	private array $stack = array();

	/**
	 * Times of the ended calls by hook: {calls, total, self, most}, in nanoseconds.
	 *
	 * @var array<string,array{calls: int, total: int, self: int, most: int}>
	 */
	private array $times = array();

	/**
	 * Hooks whose last callback is done(), which ends a measurement.
	 *
	 * @var array<string,bool>
	 */
	private array $ended = array();

	/** Number of measured calls. */
	private int $samples = 0;

	/** Number of calls that were not measured because of the limit. */
	private int $dropped = 0;

	/**
	 * Creates the object.
	 *
	 * @param int $limit Maximum number of measured calls.
	 */
	public function __construct( private readonly int $limit ) {}

	/**
	 * Starts the measurement.
	 */
	public function begin(): void {
		add_action( 'all', array( $this, 'called' ), PHP_INT_MIN );
	}

	/**
	 * Ends the measurement.
	 */
	public function end(): void {
		remove_action( 'all', array( $this, 'called' ), PHP_INT_MIN );
		foreach ( array_keys( $this->ended ) as $hook ) {
			remove_filter( $hook, array( $this, 'done' ), PHP_INT_MAX );
		}
	}

	/**
	 * Starts the measurement of a call: runs before the callbacks of every hook.
	 *
	 * @param mixed $hook Name of the hook.
	 */
	public function called( mixed $hook = null ): void {
		if ( ! is_string( $hook ) || ! isset( $GLOBALS['wp_filter'][ $hook ] ) || in_array( $hook, array( 'all', 'log_query_custom_data' ), true ) ) {
			return;
		}
		if ( $this->samples >= $this->limit ) {
			++$this->dropped;
			return;
		}
		++$this->samples;
		if ( ! isset( $this->ended[ $hook ] ) ) {
			$this->ended[ $hook ] = true;
			add_filter( $hook, array( $this, 'done' ), PHP_INT_MAX );
		}
		$this->stack[] = array( $hook, hrtime( true ), 0 );
	}

	/**
	 * Ends the measurement of a call: runs after the other callbacks of the hook.
	 *
	 * @param mixed $value Value that the hook passes on.
	 */
	public function done( mixed $value = null ): mixed {
		$now  = hrtime( true );
		$hook = current_filter();
		// A call that ended with an exception is still on the stack.
		while ( $this->stack && end( $this->stack )[0] !== $hook && in_array( $hook, array_column( $this->stack, 0 ), true ) ) {
			array_pop( $this->stack );
		}
		if ( ! $this->stack || end( $this->stack )[0] !== $hook ) {
			return $value;
		}
		list( , $start, $inner ) = array_pop( $this->stack );

		$took = $now - $start;
		$row  = $this->times[ $hook ] ?? array(
			'calls' => 0,
			'total' => 0,
			'self'  => 0,
			'most'  => 0,
		);

		$this->times[ $hook ] = array(
			'calls' => $row['calls'] + 1,
			'total' => $row['total'] + $took,
			'self'  => $row['self'] + $took - $inner,
			'most'  => max( $row['most'], $took ),
		);
		if ( $this->stack ) {
			$this->stack[ array_key_last( $this->stack ) ][2] += $took;
		}
		return $value;
	}

	/**
	 * Returns the hooks with their times, slowest first; selfMs excludes the time in nested hooks.
	 *
	 * @param int $limit Maximum number of hooks.
	 * @return array<string,mixed>
	 */
	public function document( int $limit ): array {
		uasort( $this->times, static fn ( array $a, array $b ): int => $b['self'] <=> $a['self'] );
		$rows = array();
		foreach ( array_slice( $this->times, 0, $limit, true ) as $hook => $row ) {
			$callbacks = array_values( array_filter( array_column( hook_callbacks( (string) $hook, PHP_INT_MAX ), 'callback' ), static fn ( string $name ): bool => ! str_starts_with( $name, self::class ) ) );
			$rows[]    = array(
				'hook'      => cut( (string) $hook, 200 ),
				'calls'     => $row['calls'],
				'totalMs'   => round( $row['total'] / 1e6, 3 ),
				'selfMs'    => round( $row['self'] / 1e6, 3 ),
				'maxMs'     => round( $row['most'] / 1e6, 3 ),
				'callbacks' => array_slice( $callbacks, 0, 10 ),
			);
		}
		return array(
			'calls'    => $this->samples + $this->dropped,
			'measured' => $this->samples,
			'distinct' => count( $this->times ),
			'slowest'  => $rows,
		);
	}
}
