<?php
/**
 * Workloads of a benchmark, as callables.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/places.php';
require_once __DIR__ . '/workload.php';

/**
 * Finds the workloads of a plugin: PHP, REST requests, and commands that run in their own process.
 */
final class Bench_Workloads {
	/** Maximum number of workloads in one command. */
	private const MOST = 50;

	/** Directories of the plugin with workloads, which are PHP files. */
	private const DIRECTORIES = array( 'bench', 'tests/bench' );

	/** Members of a row by its type; `id`, `label` and `type` are members of every row. */
	private const TYPES = array(
		'php'          => array( 'file', 'code' ),
		'rest'         => array( 'path', 'method', 'params' ),
		'rest-request' => array( 'path', 'method', 'params' ),
	);

	/** Types of rows that are commands; they take the arguments of the command. */
	private const COMMANDS = array( 'run-php', 'wp-cli', 'ability', 'db-operation', 'runtime-discovery', 'inventory-database' );

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Guest command arguments workloads-json, scenario-ids-json.
	 * @param string    $directory Directory of the plugin.
	 */
	public function __construct( private readonly Arguments $arguments, private readonly string $directory ) {}

	/**
	 * Returns the workloads by id, each as a callable.
	 *
	 * @return array<string,\Closure>
	 */
	public function all(): array {
		$found = $this->given();
		if ( array() === $found ) {
			foreach ( self::DIRECTORIES as $directory ) {
				foreach ( glob( "$this->directory/$directory/*.php" ) ?: array() as $file ) {
					$id             = basename( $file, '.php' );
					$found[ $id ] ??= $this->program( array( 'file' => $file ), basename( $file ) );
				}
			}
		}
		$wanted = $this->arguments->texts( 'scenario-ids-json' );
		foreach ( array_diff( $wanted, array_map( 'strval', array_keys( $found ) ) ) as $id ) {
			throw Refusal::input( sprintf( 'scenario-ids-json lists %s, but the workloads are %s', Arguments::shown( $id ), cut( implode( ', ', array_keys( $found ) ), 500 ) ) );
		}
		$found = $wanted ? array_intersect_key( $found, array_flip( $wanted ) ) : $found;
		if ( array() === $found || count( $found ) > self::MOST ) {
			throw Refusal::input( sprintf( 'there must be 1 to %d workloads, but there are %d: give workloads-json, or files in tests/bench/ or bench/ of the plugin', self::MOST, count( $found ) ) );
		}
		return $found;
	}

	/**
	 * Returns a callable that runs one step or a list of them, one after the other.
	 *
	 * @param mixed  $given Row {type, …}, or a list of rows.
	 * @param string $name  Name of the rows in error messages.
	 */
	public function steps( mixed $given, string $name ): \Closure {
		if ( ! is_array( $given ) || array() === $given ) {
			throw Refusal::input( "$name must be a step, or a list of steps" );
		}
		if ( ! array_is_list( $given ) ) {
			return $this->step( $given, $name );
		}
		$steps = array();
		foreach ( $given as $index => $row ) {
			$steps[] = $this->step( is_array( $row ) ? $row : array(), "$name step $index" );
		}
		return static function () use ( $steps ): void {
			foreach ( $steps as $step ) {
				$step();
			}
		};
	}

	/**
	 * Returns the workloads of the argument workloads-json.
	 *
	 * @return array<string,\Closure>
	 */
	private function given(): array {
		$found = array();
		foreach ( $this->arguments->json( 'workloads-json' ) as $row ) {
			$id = is_array( $row ) ? $row['id'] ?? null : null;
			if ( ! is_string( $id ) || 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/D', $id ) || isset( $found[ $id ] ) ) {
				throw Refusal::input( 'workloads-json must be a list of {id, type, …} with unique ids: letters, digits, dots, - and _' );
			}
			$name  = "workloads-json $id";
			$lists = array_intersect_key( $row, array( 'run' => 0, 'steps' => 0 ) );
			if ( array() === $lists ) {
				$found[ $id ] = $this->step( array_diff_key( $row, array( 'id' => 0, 'label' => 0 ) ), $name );
				continue;
			}
			Arguments::closed( $row, array( 'id', 'label', count( $lists ) > 1 ? 'run' : (string) array_key_first( $lists ) ), $name );
			$found[ $id ] = $this->steps( reset( $lists ), $name );
		}
		return $found;
	}

	/**
	 * Returns a callable that runs one step.
	 *
	 * @param array<string,mixed> $row  Row {type, …}.
	 * @param string              $name Name of the row in error messages.
	 */
	private function step( array $row, string $name ): \Closure {
		$command = $row['command'] ?? null;
		if ( is_string( $command ) && str_starts_with( $command, 'wordpress.' ) && ! isset( $row['type'] ) ) {
			$row = Arguments::closed( $row, array( 'command', 'args' ), $name );
			return $this->command( $command, (array) ( $row['args'] ?? array() ), $name );
		}
		$type = $row['type'] ?? ( isset( $row['command'] ) && ! isset( $row['code'] ) && ! isset( $row['file'] ) ? 'wp-cli' : 'php' );
		$type = is_string( $type ) && str_starts_with( $type, 'wordpress.' ) ? substr( $type, strlen( 'wordpress.' ) ) : $type;
		$args = array_diff_key( $row, array( 'type' => 0 ) );
		if ( ! is_string( $type ) || ! isset( self::TYPES[ $type ] ) && ! in_array( $type, self::COMMANDS, true ) ) {
			throw Refusal::input( sprintf( '%s has type %s, but the types are %s', $name, Arguments::shown( $type ), implode( ', ', array( ...array_keys( self::TYPES ), ...self::COMMANDS ) ) ) );
		}
		if ( ! isset( self::TYPES[ $type ] ) ) {
			return $this->command( "wordpress.$type", $args, $name );
		}
		$args = Arguments::closed( $args, self::TYPES[ $type ], $name );
		return 'php' === $type ? $this->program( $args, $name ) : $this->request( $args, $name );
	}

	/**
	 * Returns a callable that runs a command in its own process.
	 *
	 * @param string              $command Command id.
	 * @param array<string,mixed> $given   Arguments by name; `operation` and `operation-json` are the same.
	 * @param string              $name    Name of the row in error messages.
	 */
	private function command( string $command, array $given, string $name ): \Closure {
		if ( ! isset( WORKLOAD_COMMANDS[ $command ] ) || 'wordpress.bench' === $command ) {
			throw Refusal::unsupported( sprintf( '%s runs %s, which a benchmark cannot measure', $name, Arguments::shown( $command ) ) );
		}
		if ( isset( $given['operation'] ) && is_array( $given['operation'] ) ) {
			$given['operation-json'] = $given['operation'];
			unset( $given['operation'] );
		}
		$args   = Arguments::closed( step_args( 0, $given ), WORKLOAD_COMMANDS[ $command ], $name );
		$step   = array(
			'command' => $command,
			'args'    => $args,
		);
		$mounts = $this->arguments->mounts;
		return static function () use ( $step, $mounts ): void {
			$row = workload_step( $step, $mounts );
			if ( 'ok' !== $row['status'] ) {
				throw new \RuntimeException( (string) ( $row['message'] ?? 'the command failed' ) );
			}
		};
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
			$code = (string) preg_replace( '/^\s*<\?php\b|\?>\s*$/', '', $row['code'] );
			$file = (string) tempnam( sys_get_temp_dir(), 'bench-' );
			file_put_contents( $file, "<?php\nreturn static function () {\n$code\n};\n" );
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
	 * @param array<string,mixed> $row  Row {path, method?, params?}.
	 * @param string              $name Name of the row in error messages.
	 */
	private function request( array $row, string $name ): \Closure {
		$method = $row['method'] ?? 'GET';
		$path   = $row['path'] ?? null;
		if ( ! is_string( $path ) || ! in_array( $method, array( 'GET', 'POST', 'PUT', 'PATCH', 'DELETE' ), true ) || ! is_array( $row['params'] ?? array() ) ) {
			throw Refusal::input( "$name must have path, and may have method and params" );
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
}
