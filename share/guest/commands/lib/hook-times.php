<?php
/**
 * How long hooks take, all callbacks of a call together.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/listing.php';

/**
 * Takes the time of calls of hooks that have callbacks, up to a number of calls.
 */
final class Hook_Times {
	/**
	 * Calls that are under way: {hook, start, inner}.
	 *
	 * @var list<array{string, int, int}>
	 */
	private array $stack = array();

	/**
	 * Times by hook: {calls, total, self, most}, nanoseconds.
	 *
	 * @var array<string,array{calls: int, total: int, self: int, most: int}>
	 */
	private array $times = array();

	/**
	 * Hooks that have the callback which ends a call.
	 *
	 * @var array<string,bool>
	 */
	private array $ended = array();

	/** Calls so far. */
	private int $samples = 0;

	/** Calls that were left out. */
	private int $dropped = 0;

	/**
	 * Makes it.
	 *
	 * @param int $limit Calls that are measured.
	 */
	public function __construct( private readonly int $limit ) {}

	/**
	 * Begins.
	 */
	public function begin(): void {
		add_action( 'all', array( $this, 'called' ), PHP_INT_MIN );
	}

	/**
	 * Ends.
	 */
	public function end(): void {
		remove_action( 'all', array( $this, 'called' ), PHP_INT_MIN );
		foreach ( array_keys( $this->ended ) as $hook ) {
			remove_filter( $hook, array( $this, 'done' ), PHP_INT_MAX );
		}
	}

	/**
	 * A hook is about to call its callbacks.
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
	 * Every callback of a hook was called.
	 *
	 * @param mixed $value What the hook passes on.
	 */
	public function done( mixed $value = null ): mixed {
		$now  = hrtime( true );
		$hook = current_filter();
		// A call that ended with an exception is still on top of the stack.
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
	 * Hooks, the slowest first; selfMs is without the hooks that were called within.
	 *
	 * @param int $limit Hooks at most.
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
