<?php
/**
 * Runs the workloads of a benchmark and measures them.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/bench-workloads.php';
require_once __DIR__ . '/environment.php';
require_once __DIR__ . '/watch.php';

/**
 * Sets the environment variables that the caller wants for the workloads; must run before WordPress is
 * loaded.
 */
function bench_environment(): void {
	try {
		foreach ( environment_variables( Entry::$arguments ) as $name => $value ) {
			putenv( "$name=$value" );
		}
	} catch ( Refusal $refusal ) {
		finish( static fn () => throw $refusal );
	}
}

/**
 * Finds the workloads of a plugin (scripts or REST requests) and measures them.
 */
final class Bench {
	/** Maximum number of measured runs of a workload, and of warm-up runs; the samples are kept in memory. */
	private const ITERATIONS = 1000000;
	/** Time limit of all workloads, in seconds; later workloads are not started. */
	private const SECONDS = 600;

	/** Directory of the plugin whose workloads run. */
	private readonly string $directory;

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 * @param Watch     $watch     Measures time, memory and queries.
	 */
	public function __construct( private readonly Arguments $arguments, private readonly Watch $watch ) {
		$slug            = $arguments->required( 'plugin-slug' );
		$this->directory = WP_PLUGIN_DIR . '/' . $slug;
		foreach ( array( ...$arguments->texts( 'dependency-slugs' ), $slug ) as $name ) {
			if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/D', $name ) || ! is_dir( WP_PLUGIN_DIR . '/' . $name ) ) {
				throw Refusal::input( sprintf( 'there is no plugin %s below wp-content/plugins of this guest; mount it there', Arguments::shown( $name ) ) );
			}
			$files = array_keys( get_plugins( '/' . $name ) );
			$error = array() === $files ? new \WP_Error( 'header', 'no file has a plugin\'s header' ) : activate_plugin( $name . '/' . $files[0] );
			if ( is_wp_error( $error ) && 'unexpected_output' !== $error->get_error_code() ) {
				throw Refusal::failed( "WordPress could not activate $name: " . cut( wp_strip_all_tags( $error->get_error_message() ), 500 ) );
			}
		}
	}

	/**
	 * Runs all workloads and returns their measurements.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function run(): array {
		$iterations = $this->arguments->number( 'iterations', 10, 1, self::ITERATIONS );
		$warmup     = $this->arguments->number( 'warmup', 1, 0, self::ITERATIONS );
		$lifecycle  = $this->arguments->record( 'lifecycle-json', array( 'setup', 'teardown' ) );
		$between    = $this->reset();
		$programs   = new Bench_Workloads( $this->arguments, $this->directory );
		foreach ( $this->arguments->texts( 'bootstrap-files-json' ) as $file ) {
			require_once file_at( 'bootstrap-files-json', $file, $this->directory );
		}
		$phase    = static fn ( string $name ): ?\Closure => isset( $lifecycle[ $name ] ) ? $programs->steps( $lifecycle[ $name ], "lifecycle-json.$name" ) : null;
		$setup    = $phase( 'setup' );
		$teardown = $phase( 'teardown' );
		$rows     = array();
		$end      = hrtime( true ) + self::SECONDS * 1000000000;
		foreach ( $programs->all() as $id => $workload ) {
			if ( hrtime( true ) > $end ) {
				$rows[] = array(
					'id'      => $id,
					'status'  => 'failed',
					'message' => sprintf( 'not started: the limit of %d seconds had passed', self::SECONDS ),
				);
				continue;
			}
			$rows[] = array( 'id' => (string) $id ) + $this->measure( $workload, $setup, $teardown, $warmup, $iterations, $between, $end );
		}
		$document = array(
			'schema'     => 'wp-codebox/bench-results/v1',
			'status'     => 'ok',
			'component'  => cut( '' === $this->arguments->first( 'component-id' ) ? $this->arguments->text( 'plugin-slug' ) : $this->arguments->first( 'component-id' ), 200 ),
			'iterations' => $iterations,
			'warmup'     => $warmup,
			'php'        => PHP_VERSION,
			'wordpress'  => wp_get_wp_version(),
			'scenarios'  => $rows,
		);
		$failed = array_values( array_filter( $rows, static fn ( array $row ): bool => 'failed' === $row['status'] ) );
		// The file keeps every sample, also when the printed document is shortened.
		$document += array(
			'diagnostics' => array_map(
				static fn ( array $row ): array => array(
					'code'     => 'workload-failed',
					'scenario' => $row['id'],
					'message'  => $row['message'],
				),
				$failed
			),
			'provenance'  => array(
				'component' => $document['component'],
				'plugin'    => $this->arguments->text( 'plugin-slug' ),
				'php'       => PHP_VERSION,
				'wordpress' => wp_get_wp_version(),
			),
		);
		$document['artifacts'] = (object) array( 'results' => write_artifact( 'bench-results.json', document_text( named( $document ) ), 'bench-results' ) );
		$failed                = array_column( $failed, 'id' );
		if ( $failed ) {
			throw Refusal::failed( 'workloads failed: ' . cut( implode( ', ', $failed ), 500 ), $document );
		}
		return $document;
	}

	/**
	 * Returns what is reset between the runs of a workload: none or cache.
	 */
	private function reset(): string {
		$policy  = $this->arguments->record( 'reset-policy-json', array( 'between', 'mode' ) );
		$between = $policy['between'] ?? $policy['mode'] ?? 'none';
		if ( ! in_array( $between, array( 'none', 'cache' ), true ) ) {
			throw Refusal::input( sprintf( 'reset-policy-json is %s, but must be {"between": "none"} or {"between": "cache"}; to begin with another database use checkpoints', Arguments::shown( $between ) ) );
		}
		return $between;
	}

	/**
	 * Measures the runs of one workload.
	 *
	 * @param \Closure  $workload   Workload to run.
	 * @param ?\Closure $setup      Called once before all runs of the workload.
	 * @param ?\Closure $teardown   Called once after all runs of the workload.
	 * @param int       $warmup     Number of unmeasured runs.
	 * @param int       $iterations Number of measured runs.
	 * @param string    $between    Reset between runs: none or cache.
	 * @param int       $end        Deadline, in nanoseconds.
	 * @return array<string,mixed>
	 */
	private function measure( \Closure $workload, ?\Closure $setup, ?\Closure $teardown, int $warmup, int $iterations, string $between, int $end ): array {
		$samples = array();
		$first   = array();
		try {
			$setup && $setup();
			for ( $i = -$warmup; $i < $iterations; $i++ ) {
				if ( hrtime( true ) > $end ) {
					throw new \RuntimeException( sprintf( 'not finished: the limit of %d seconds had passed', self::SECONDS ) );
				}
				'cache' === $between && wp_cache_flush();
				gc_collect_cycles();
				$before = memory_get_usage();
				$this->watch->begin();
				$workload();
				$costs = $this->watch->costs();
				$run   = array(
					'wallMs'      => $costs['wallMs'],
					'cpuMs'       => $costs['cpuMs'],
					'memoryBytes' => max( 0, $costs['peakMemoryBytes'] - $before ),
					'queries'     => $this->watch->queries()['count'],
				);
				// The first run fills caches, so the later ones do not show what a cold request costs.
				$first = array() === $first ? $run : $first;
				foreach ( $i < 0 ? array() : $run as $name => $value ) {
					$samples[ $name ][] = $value;
				}
			}
			$teardown && $teardown();
		} catch ( \Throwable $thrown ) {
			return array(
				'status'  => 'failed',
				'message' => cut( get_class( $thrown ) . ': ' . $thrown->getMessage() . ' in ' . guest_path( $thrown->getFile() ) . ':' . $thrown->getLine(), 1000 ),
			);
		}
		return array(
			'status'     => 'ok',
			'iterations' => $iterations,
			'metrics'    => array_combine( array_keys( $samples ), array_map( static fn ( int|float $value, array $values ): array => array( 'first' => $value ) + statistics( $values ), $first, $samples ) ),
			'samples'    => $samples,
		);
	}
}

/**
 * Returns minimum, mean, percentiles, maximum and standard deviation of a list of numbers; percentiles use
 * the nearest-rank method.
 *
 * @param list<int|float> $values Measured values.
 * @return array<string,int|float>
 */
function statistics( array $values ): array {
	sort( $values );
	$count = count( $values );
	$mean  = array_sum( $values ) / $count;
	$rank  = static fn ( int $percent ): int|float => $values[ max( 0, (int) ceil( $percent / 100 * $count ) - 1 ) ];
	return array(
		'min'    => $values[0],
		'mean'   => round( $mean, 3 ),
		'p50'    => $rank( 50 ),
		'p90'    => $rank( 90 ),
		'p95'    => $rank( 95 ),
		'p99'    => $rank( 99 ),
		'max'    => $values[ $count - 1 ],
		'stddev' => round( sqrt( array_sum( array_map( static fn ( $v ): float => ( $v - $mean ) ** 2, $values ) ) / $count ), 3 ),
	);
}
