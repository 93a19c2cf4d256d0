<?php
/**
 * Runs the workloads of a benchmark and measures them.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/places.php';
require_once __DIR__ . '/watch.php';

/**
 * Sets the environment variables that the caller wants for the workloads; must run before WordPress is
 * loaded.
 */
function bench_environment(): void {
	try {
		foreach ( Entry::$arguments->object( 'env-json' ) as $name => $value ) {
			if ( 1 !== preg_match( '/^[A-Za-z_][A-Za-z0-9_]{0,99}$/D', (string) $name ) || ! is_scalar( $value ) || 1 === preg_match( '/^(?:CODEBOX_|LD_|PATH$|HOME$|TMPDIR$)/', (string) $name ) ) {
				throw Refusal::input( sprintf( 'env-json has %s, but names are like MY_SETTING (not PATH, HOME, TMPDIR, LD_… or CODEBOX_…) and values texts, numbers or truth values', Arguments::shown( $name ) ) );
			}
			putenv( $name . '=' . ( is_bool( $value ) ? (int) $value : $value ) );
		}
	} catch ( Refusal $refusal ) {
		finish( static fn () => throw $refusal );
	}
}

/**
 * Finds the workloads of a plugin (scripts or REST requests) and measures them.
 */
final class Bench {
	/** Maximum number of workloads in one command. */
	private const WORKLOADS = 50;
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
		$iterations = $this->arguments->number( 'iterations', 10, 1, 1000 );
		$warmup     = $this->arguments->number( 'warmup', 1, 0, 100 );
		$lifecycle  = $this->arguments->record( 'lifecycle-json', array( 'setup', 'teardown' ) );
		$policy     = $this->arguments->object( 'reset-policy-json' );
		$between    = $policy['between'] ?? 'none';
		if ( array_diff_key( $policy, array( 'between' => 0 ) ) || ! in_array( $between, array( 'none', 'cache' ), true ) ) {
			throw Refusal::input( 'reset-policy-json must be {"between": "none"} or {"between": "cache"}; to begin with another database use checkpoints' );
		}
		foreach ( $this->arguments->texts( 'bootstrap-files-json' ) as $file ) {
			require_once file_at( 'bootstrap-files-json', $file, $this->directory );
		}
		$phase    = fn ( string $name ): ?\Closure => isset( $lifecycle[ $name ] ) ? $this->program( Arguments::closed( (array) $lifecycle[ $name ], array( 'file', 'code' ), "lifecycle-json.$name" ), "lifecycle-json.$name" ) : null;
		$setup    = $phase( 'setup' );
		$teardown = $phase( 'teardown' );
		$rows     = array();
		$end      = hrtime( true ) + self::SECONDS * 1000000000;
		foreach ( $this->workloads() as $id => $workload ) {
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
			'component'  => cut( $this->arguments->text( 'component-id', $this->arguments->text( 'plugin-slug' ) ), 200 ),
			'iterations' => $iterations,
			'warmup'     => $warmup,
			'php'        => PHP_VERSION,
			'wordpress'  => wp_get_wp_version(),
			'scenarios'  => $rows,
		);
		$failed = array_column( array_filter( $rows, static fn ( array $row ): bool => 'failed' === $row['status'] ), 'id' );
		if ( $failed ) {
			throw Refusal::failed( 'workloads failed: ' . cut( implode( ', ', $failed ), 500 ), $document );
		}
		return $document;
	}

	/**
	 * Returns the workloads by id, each as a callable.
	 *
	 * @return array<string,\Closure>
	 */
	private function workloads(): array {
		$found = array();
		if ( $this->arguments->has( 'workloads-json' ) ) {
			foreach ( $this->arguments->json( 'workloads-json' ) as $row ) {
				$id = is_array( $row ) ? $row['id'] ?? null : null;
				if ( ! is_string( $id ) || 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/D', $id ) || isset( $found[ $id ] ) ) {
					throw Refusal::input( 'workloads-json must be a list of {id, type, …} with unique ids: letters, digits, dots, - and _' );
				}
				$found[ $id ] = match ( $row['type'] ?? 'php' ) {
					'php' => $this->program( Arguments::closed( $row, array( 'id', 'type', 'file', 'code' ), "workloads-json $id" ), "workloads-json $id" ),
					'rest' => $this->request( Arguments::closed( $row, array( 'id', 'type', 'path', 'method', 'params' ), "workloads-json $id" ), $id ),
					default => throw Refusal::input( sprintf( 'workloads-json %s has type %s, but the types are php and rest', $id, Arguments::shown( $row['type'] ) ) ),
				};
			}
		} else {
			foreach ( glob( $this->directory . '/bench/*.php' ) ?: array() as $file ) {
				$found[ basename( $file, '.php' ) ] = $this->program( array( 'file' => $file ), basename( $file ) );
			}
		}
		$wanted = $this->arguments->texts( 'scenario-ids-json' );
		foreach ( array_diff( $wanted, array_keys( $found ) ) as $id ) {
			throw Refusal::input( sprintf( 'scenario-ids-json lists %s, but the workloads are %s', Arguments::shown( $id ), cut( implode( ', ', array_keys( $found ) ), 500 ) ) );
		}
		$found = $wanted ? array_intersect_key( $found, array_flip( $wanted ) ) : $found;
		if ( array() === $found || count( $found ) > self::WORKLOADS ) {
			throw Refusal::input( sprintf( 'there must be 1 to %d workloads, but there are %d: give workloads-json, or files in bench/ of the plugin', self::WORKLOADS, count( $found ) ) );
		}
		return $found;
	}

	/**
	 * Returns a callable that runs a file or a string of code.
	 *
	 * @param array<string,mixed> $row  Row {file|code}.
	 * @param string              $name Name of the row in error messages.
	 */
	private function program( array $row, string $name ): \Closure {
		if ( is_string( $row['file'] ?? null ) === is_string( $row['code'] ?? null ) ) {
			throw Refusal::input( "$name must have either file or code" );
		}
		if ( is_string( $row['code'] ?? null ) ) {
			$file = (string) tempnam( sys_get_temp_dir(), 'bench-' );
			file_put_contents( $file, "<?php\nreturn static function () {\n{$row['code']}\n};\n" );
		} else {
			$file = str_starts_with( $row['file'], $this->directory . '/' ) ? $row['file'] : file_at( $name, $row['file'], $this->directory );
		}
		try {
			$program = require $file;
		} catch ( \Throwable $thrown ) {
			throw Refusal::failed( "$name cannot be loaded: " . cut( $thrown->getMessage(), 500 ) );
		}
		if ( ! is_callable( $program ) ) {
			throw Refusal::input( "$name must return a callable, like `return function () { … };`" );
		}
		return \Closure::fromCallable( $program );
	}

	/**
	 * Returns a callable that sends a REST request.
	 *
	 * @param array<string,mixed> $row Row {path, method?, params?}.
	 * @param string              $id  Id of the workload.
	 */
	private function request( array $row, string $id ): \Closure {
		$method = $row['method'] ?? 'GET';
		$path   = $row['path'] ?? null;
		if ( ! is_string( $path ) || ! in_array( $method, array( 'GET', 'POST', 'PUT', 'PATCH', 'DELETE' ), true ) || ! is_array( $row['params'] ?? array() ) ) {
			throw Refusal::input( "workloads-json $id must have path, and may have method and params" );
		}
		return static function () use ( $method, $path, $row ): void {
			$request = new \WP_REST_Request( $method, '/' . ltrim( (string) preg_replace( '~^/*wp-json~', '', $path ), '/' ) );
			'GET' === $method ? $request->set_query_params( $row['params'] ?? array() ) : $request->set_body_params( $row['params'] ?? array() );
			$response = rest_do_request( $request );
			if ( $response->get_status() >= 400 ) {
				throw new \RuntimeException( "$method $path answered " . $response->get_status() );
			}
		};
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
				if ( $i >= 0 ) {
					$samples['wallMs'][]      = $costs['wallMs'];
					$samples['cpuMs'][]       = $costs['cpuMs'];
					$samples['memoryBytes'][] = max( 0, $costs['peakMemoryBytes'] - $before );
					$samples['queries'][]     = $this->watch->queries()['count'];
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
			'metrics'    => array_map( statistics( ... ), $samples ),
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
