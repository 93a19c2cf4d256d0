<?php
/**
 * Watches what a request does: PHP's messages, queries, hooks, memory and time. Bounded.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/login.php';

/**
 * One request. Made before WordPress is loaded.
 */
final class Watch {
	/** Messages of PHP that are kept. */
	private const MESSAGES = 50;
	/** Fingerprints of queries that are kept. */
	private const FINGERPRINTS = 2000;
	/** Queries that wpdb keeps at a time. */
	private const KEPT_QUERIES = 500;

	/** When it began, nanoseconds. */
	private int $started;

	/** CPU time when it began, microseconds. */
	private int $cpu;

	/**
	 * Messages of PHP.
	 *
	 * @var list<array<string,mixed>>
	 */
	private array $messages = array();

	/**
	 * How many there were, by level.
	 *
	 * @var array<string,int>
	 */
	private array $levels = array();

	/**
	 * Queries by fingerprint: {count, ms, most, sample, caller}.
	 *
	 * @var array<string,array<string,mixed>>
	 */
	private array $queries = array();

	/** Number of queries. */
	private int $query_count = 0;

	/** Their time, milliseconds. */
	private float $query_ms = 0.0;

	/**
	 * Makes it and begins to watch.
	 *
	 * @param int $query_bytes Of a query's text, bytes that are kept.
	 */
	public function __construct( private readonly int $query_bytes = 500 ) {
		$this->begin();
		error_reporting( E_ALL );
		set_error_handler( $this->message( ... ) );
		defined( 'SAVEQUERIES' ) || define( 'SAVEQUERIES', true );
		before_wordpress( 'log_query_custom_data', $this->query( ... ), 4, PHP_INT_MAX );
	}

	/**
	 * Forgets what was before and begins again.
	 */
	public function begin(): void {
		$this->started     = hrtime( true );
		$this->cpu         = self::cpu_time();
		$this->messages    = array();
		$this->levels      = array();
		$this->queries     = array();
		$this->query_count = 0;
		$this->query_ms    = 0.0;
		memory_reset_peak_usage();
	}

	/**
	 * Keeps a message of PHP. Errors that are silenced are none.
	 *
	 * @param int    $level   Level.
	 * @param string $message Message.
	 * @param string $file    Where.
	 * @param int    $line    Where.
	 */
	public function message( int $level, string $message, string $file, int $line ): bool {
		if ( 0 === ( error_reporting() & $level ) ) {
			return true;
		}
		$name                  = match ( $level ) {
			E_WARNING, E_USER_WARNING => 'warning',
			E_NOTICE, E_USER_NOTICE => 'notice',
			E_DEPRECATED, E_USER_DEPRECATED => 'deprecated',
			default => 'error',
		};
		$this->levels[ $name ] = ( $this->levels[ $name ] ?? 0 ) + 1;
		if ( count( $this->messages ) < self::MESSAGES ) {
			$this->messages[] = array(
				'level'   => $name,
				'message' => cut( text_without_tags( $message ), 500 ),
				'file'    => guest_path( $file ),
				'line'    => $line,
			);
		}
		// PHP itself ends the program at an error that it was told to end at.
		return E_USER_ERROR !== $level && E_RECOVERABLE_ERROR !== $level;
	}

	/**
	 * Keeps a query.
	 *
	 * @param mixed  $data   What wpdb keeps with it.
	 * @param string $query  SQL statement.
	 * @param float  $time   Seconds.
	 * @param string $caller Callers.
	 */
	public function query( mixed $data, string $query, float $time, string $caller ): mixed {
		++$this->query_count;
		$this->query_ms += $time * 1000;
		$key             = fingerprint( $query );
		if ( ! isset( $this->queries[ $key ] ) ) {
			if ( count( $this->queries ) >= self::FINGERPRINTS ) {
				return $data;
			}
			$callers               = array_filter( explode( ', ', $caller ), static fn ( string $name ): bool => 1 !== preg_match( '/^(?:wpdb|WP_SQLite_DB)->/', $name ) );
			$this->queries[ $key ] = array(
				'count'  => 0,
				'ms'     => 0.0,
				'most'   => 0.0,
				'text'   => cut( trim( (string) preg_replace( '/\s+/', ' ', $key ) ), $this->query_bytes ),
				'caller' => cut( (string) end( $callers ), 200 ),
			);
		}
		$row         = &$this->queries[ $key ];
		$row['most'] = max( $row['most'], $time * 1000 );
		$row['ms']  += $time * 1000;
		++$row['count'];
		// wpdb would keep every text of a long request.
		if ( count( $GLOBALS['wpdb']->queries ?? array() ) > self::KEPT_QUERIES ) {
			$GLOBALS['wpdb']->queries = array();
		}
		return $data;
	}

	/**
	 * Messages of PHP.
	 *
	 * @return array<string,mixed>
	 */
	public function php(): array {
		return array(
			'total'    => array_sum( $this->levels ),
			'levels'   => (object) $this->levels,
			'messages' => $this->messages,
		);
	}

	/**
	 * Queries: count, time and the fingerprints that took longest.
	 *
	 * @param int $most Fingerprints at most.
	 * @return array<string,mixed>
	 */
	public function queries( int $most = 0 ): array {
		$rows = $this->queries;
		uasort( $rows, static fn ( array $a, array $b ): int => array( $b['ms'], $a['text'] ) <=> array( $a['ms'], $b['text'] ) );
		$fingerprints = array();
		foreach ( array_slice( $rows, 0, $most ) as $key => $row ) {
			$fingerprints[] = array(
				'fingerprint' => hash( 'sha256', (string) $key ),
				'query'       => $row['text'],
				'count'       => $row['count'],
				'totalMs'     => round( $row['ms'], 3 ),
				'maxMs'       => round( $row['most'], 3 ),
				'caller'      => $row['caller'],
			);
		}
		return array(
			'count'    => $this->query_count,
			'totalMs'  => round( $this->query_ms, 3 ),
			'distinct' => count( $this->queries ),
			'repeated' => count( array_filter( $this->queries, static fn ( array $row ): bool => $row['count'] > 1 ) ),
		) + ( $most > 0 ? array( 'fingerprints' => $fingerprints ) : array() );
	}

	/**
	 * Time and memory.
	 *
	 * @return array{wallMs: float, cpuMs: float, peakMemoryBytes: int}
	 */
	public function costs(): array {
		$cpu = self::cpu_time();
		return array(
			'wallMs'          => round( ( hrtime( true ) - $this->started ) / 1e6, 3 ),
			'cpuMs'           => round( ( $cpu - $this->cpu ) / 1000, 3 ),
			'peakMemoryBytes' => memory_get_peak_usage(),
		);
	}

	/**
	 * Hooks that were called.
	 *
	 * @return array{actions: int, actionCalls: int, filters: int, filterCalls: int}
	 */
	public function hooks(): array {
		return array(
			'actions'     => count( $GLOBALS['wp_actions'] ?? array() ),
			'actionCalls' => (int) array_sum( $GLOBALS['wp_actions'] ?? array() ),
			'filters'     => count( $GLOBALS['wp_filters'] ?? array() ),
			'filterCalls' => (int) array_sum( $GLOBALS['wp_filters'] ?? array() ),
		);
	}

	/**
	 * CPU time of this process, microseconds.
	 */
	private static function cpu_time(): int {
		$usage = getrusage() ?: array();
		return ( ( $usage['ru_utime.tv_sec'] ?? 0 ) + ( $usage['ru_stime.tv_sec'] ?? 0 ) ) * 1000000 + ( $usage['ru_utime.tv_usec'] ?? 0 ) + ( $usage['ru_stime.tv_usec'] ?? 0 );
	}
}

/**
 * A query without its values, so that queries that differ only in them are one.
 *
 * @param string $query SQL statement.
 */
function fingerprint( string $query ): string {
	$query = mb_scrub( substr( $query, 0, 20000 ), 'UTF-8' );
	$query = (string) preg_replace( '/\'(?:[^\'\\\\]|\\\\.|\'\')*\'?|"(?:[^"\\\\]|\\\\.|"")*"?/s', '?', $query );
	$query = (string) preg_replace( '/(?<![A-Za-z0-9_])-?\d+(?:\.\d+)?(?![A-Za-z0-9_])/', '?', $query );
	$query = (string) preg_replace( '/\(\s*\?(?:\s*,\s*\?)+\s*\)/', '(?…)', $query );
	return trim( (string) preg_replace( '/\s+/', ' ', $query ) );
}

/**
 * A text without tags; WordPress's own function may not be loaded yet.
 *
 * @param string $text Text to print.
 */
function text_without_tags( string $text ): string {
	return trim( strip_tags( $text ) );
}
