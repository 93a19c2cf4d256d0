<?php
/**
 * Observes a request: PHP messages, queries, hooks, memory and time, up to limits.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/login.php';
require_once __DIR__ . '/php-error.php';

/**
 * Observer of one request. Must be created before WordPress is loaded.
 */
final class Watch {
	/** Maximum number of stored PHP messages. */
	private const MESSAGES = 50;
	/** Maximum number of stored query fingerprints (query texts without their values). */
	private const FINGERPRINTS = 2000;
	/** Maximum number of queries that wpdb stores at a time. */
	private const KEPT_QUERIES = 500;

	/** Start time in nanoseconds. */
	private int $started;

	/** CPU time at the start, in microseconds. */
	private int $cpu;

	/**
	 * The first PHP messages (notices, warnings, errors) of the request.
	 *
	 * @var list<array<string,mixed>>
	 */
	private array $messages = array();

	/**
	 * Number of PHP messages by level, such as warning.
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

	/** Number of queries, including those that were not stored. */
	private int $query_count = 0;

	/** Total query time in milliseconds. */
	private float $query_ms = 0.0;

	/**
	 * Creates the observer and starts it.
	 *
	 * @param int $query_bytes Maximum number of stored bytes per query text.
	 */
	public function __construct( private readonly int $query_bytes = 500 ) {
		$this->begin();
		error_reporting( E_ALL );
		set_error_handler( $this->message( ... ) );
		defined( 'SAVEQUERIES' ) || define( 'SAVEQUERIES', true );
		before_wordpress( 'log_query_custom_data', $this->query( ... ), 4, PHP_INT_MAX );
	}

	/**
	 * Discards earlier observations and starts again.
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
	 * Stores a PHP message, except for errors that the code has silenced. Error handler of PHP.
	 *
	 * @param int    $level   Error level.
	 * @param string $message Message text.
	 * @param string $file    File of the error.
	 * @param int    $line    Line of the error.
	 */
	public function message( int $level, string $message, string $file, int $line ): bool {
		if ( 0 === ( error_reporting() & $level ) ) {
			return true;
		}
		$row                           = php_error( $level, $message, $file, $line );
		$this->levels[ $row['level'] ] = ( $this->levels[ $row['level'] ] ?? 0 ) + 1;
		if ( count( $this->messages ) < self::MESSAGES ) {
			$this->messages[] = $row;
		}
		// Returning false lets PHP's own handler end the program for these errors.
		return E_USER_ERROR !== $level && E_RECOVERABLE_ERROR !== $level;
	}

	/**
	 * Records a query and its duration. Callback of wpdb's filter `log_query_custom_data`.
	 *
	 * @param mixed  $data   Data that wpdb stores with the query.
	 * @param string $query  SQL statement.
	 * @param float  $time   Duration in seconds.
	 * @param string $caller Call stack.
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
		// Without this, wpdb would keep the texts of all queries in memory.
		if ( count( $GLOBALS['wpdb']->queries ?? array() ) > self::KEPT_QUERIES ) {
			$GLOBALS['wpdb']->queries = array();
		}
		return $data;
	}

	/**
	 * Returns the PHP messages and their numbers by level.
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
	 * Returns the number of queries, their total time and the slowest fingerprints.
	 *
	 * @param int $most Maximum number of fingerprints.
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
	 * Returns time and memory that the request has used.
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
	 * Returns how many hooks were called, and how often.
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
	 * Returns the CPU time of this process in microseconds.
	 */
	private static function cpu_time(): int {
		$usage = getrusage() ?: array();
		return ( ( $usage['ru_utime.tv_sec'] ?? 0 ) + ( $usage['ru_stime.tv_sec'] ?? 0 ) ) * 1000000 + ( $usage['ru_utime.tv_usec'] ?? 0 ) + ( $usage['ru_stime.tv_usec'] ?? 0 );
	}
}

/**
 * Replaces the values of a query, so queries that differ only in values share one fingerprint.
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
 * Removes tags from a text; WordPress's own function may not be loaded yet.
 *
 * @param string $text Text that may contain tags.
 */
function text_without_tags( string $text ): string {
	return trim( strip_tags( $text ) );
}
