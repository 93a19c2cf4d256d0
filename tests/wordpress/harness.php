<?php
/**
 * Test runner that runs inside a loaded WordPress.
 *
 * Each file of `cases/` returns a closure that gets the runner and runs its tests. A test
 * fails by throwing; every test must assert something.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Tests;

use Throwable;

final class Failed extends \Exception {}

final class Harness {

	/** Flags of PHP for a process that serves several requests: compiled files stay in its memory, and each request checks whether they have changed. */
	public const SHARED_OPCODES = [ '-d', 'opcache.file_cache_only=0', '-d', 'opcache.revalidate_freq=0' ];

	public int $passed = 0;
	public int $failed = 0;
	private int $asserted = 0;

	/** Names of permission filters whose callbacks tried to give a right, since the test began. */
	public array $widened = [];

	/** Process of `forker.php` and its pipes; the first call of wp() starts it. */
	private mixed $forker       = null;
	private array $forker_pipes = [];

	public function __construct( public readonly string $phase, public readonly array $php_flags, private readonly string $only ) {
		add_action( 'doing_it_wrong_run', fn( string $function ) => str_starts_with( $function, 'wp_codebox_' ) && $this->widened[] = $function );
		// The cases that try to widen a permission expect the notice; it would fail the suite in the debug log.
		add_filter( 'doing_it_wrong_trigger_error', static fn( bool $trigger, string $function ): bool => $trigger && ! str_starts_with( $function, 'wp_codebox_' ), 10, 2 );
	}

	public function test( string $name, callable $body ): void {
		if ( '' !== $this->only && ! str_contains( $name, $this->only ) ) {
			return;
		}
		$this->asserted = 0;
		$this->widened  = [];
		$environment    = getenv();
		try {
			$body();
			if ( 0 === $this->asserted ) {
				throw new Failed( 'the test asserts nothing' );
			}
			++$this->passed;
		} catch ( Throwable $thrown ) {
			++$this->failed;
			printf( "FAIL %s: %s\n  %s\n", $this->phase, $name, str_replace( "\n", "\n  ", $thrown->getMessage() ) );
			if ( ! $thrown instanceof Failed ) {
				printf( "  %s\n", str_replace( "\n", "\n  ", (string) $thrown ) );
			}
		}
		foreach ( array_keys( array_diff_key( getenv(), $environment ) ) as $added ) {
			putenv( $added );
		}
		wp_set_current_user( 0 );
	}

	public function same( mixed $expected, mixed $actual, string $what = '' ): void {
		++$this->asserted;
		if ( $expected !== $actual ) {
			throw new Failed( trim( $what . "\nexpected " . var_export( $expected, true ) . "\nactual   " . var_export( $actual, true ) ) );
		}
	}

	public function true( mixed $actual, string $what ): void {
		++$this->asserted;
		if ( true !== $actual ) {
			throw new Failed( $what );
		}
	}

	public function contains( string $needle, string $text ): void {
		++$this->asserted;
		if ( ! str_contains( $text, $needle ) ) {
			throw new Failed( "not found: $needle\nin: $text" );
		}
	}

	/** Asserts that a value is a WP_Error with this code and status. */
	public function error( string $code, int $status, mixed $actual ): void {
		++$this->asserted;
		if ( ! is_wp_error( $actual ) ) {
			throw new Failed( "no error, but: " . json_encode( $actual, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE ) );
		}
		$this->same( [ $code, $status ], [ $actual->get_error_code(), $actual->get_error_data()['status'] ?? null ], $actual->get_error_message() );
	}

	/** Asserts that a value is not a WP_Error and returns it. */
	public function ok( mixed $actual ): array {
		++$this->asserted;
		if ( is_wp_error( $actual ) ) {
			throw new Failed( $actual->get_error_code() . ': ' . $actual->get_error_message() . ' ' . json_encode( $actual->get_error_data() ) );
		}
		return $actual;
	}

	/**
	 * Runs WP-CLI on the test site; returns exit status, STDOUT and STDERR. The option `meanwhile`
	 * is called with the process id once STDERR or STDOUT contains the text of the option `after`. With the
	 * option `terminal` all streams are one terminal, and STDOUT is what it got.
	 */
	public function wp( array $arguments, array $environment = [], array $options = [] ): array {
		$arguments   = array_merge( [ (string) getenv( 'TEST_WP_CLI' ), '--path=' . ABSPATH ], 0 === posix_getuid() ? [ '--allow-root' ] : [], $arguments );
		$environment = array_merge( getenv(), [ 'WP_CLI_CONFIG_PATH' => '/dev/null', 'WP_CLI_DISABLE_AUTO_CHECK_UPDATE' => '1' ], $environment );
		$directory   = $options['cwd'] ?? sys_get_temp_dir();
		$files       = array_map( static fn(): string => (string) tempnam( sys_get_temp_dir(), 'wp-cli-' ), range( 0, 2 ) );
		file_put_contents( $files[0], $options['stdin'] ?? '' );
		if ( isset( $options['meanwhile'] ) || isset( $options['php_flags'] ) || isset( $options['terminal'] ) ) {
			$code = $this->execute( $arguments, $environment, $directory, $files, $options );
		} else {
			$code = $this->fork( $arguments, $environment, $directory, $files );
		}
		[ , $out, $err ] = array_map( 'file_get_contents', $files );
		array_map( 'unlink', $files );
		return [ $code, $out, $err ];
	}

	/** Runs a PHP script in a new process; returns its exit status. */
	private function execute( array $arguments, array $environment, string $directory, array $files, array $options ): int {
		$pipes   = [];
		$command = array_merge( [ PHP_BINARY ], $options['php_flags'] ?? $this->php_flags, $arguments );
		if ( isset( $options['terminal'] ) ) {
			$command = [ 'script', '--quiet', '--return', '--command', implode( ' ', array_map( 'escapeshellarg', $command ) ), '/dev/null' ];
		}
		$process = proc_open(
			$command,
			[ [ 'file', $files[0], 'r' ], [ 'file', $files[1], 'a' ], [ 'file', $files[2], 'a' ] ],
			$pipes,
			$directory,
			$environment
		);
		if ( isset( $options['meanwhile'] ) ) {
			$until = microtime( true ) + 60;
			while ( ( $state = proc_get_status( $process ) )['running'] && microtime( true ) < $until && ! str_contains( file_get_contents( $files[1] ) . file_get_contents( $files[2] ), $options['after'] ) ) {
				usleep( 20000 );
			}
			if ( $state['running'] ) {
				$options['meanwhile']( $state['pid'] );
			}
		}
		$code = proc_close( $process );
		// The first proc_get_status() after the end reaps the process, and only its result has the exit status.
		return isset( $state ) && ! $state['running'] ? $state['exitcode'] : $code;
	}

	/** Runs a PHP script in a fork of a process that has started PHP; returns its exit status. */
	private function fork( array $arguments, array $environment, string $directory, array $files ): int {
		$this->forker ??= proc_open(
			array_merge( [ PHP_BINARY ], $this->php_flags, self::SHARED_OPCODES, [ '-d', 'ffi.enable=1', __DIR__ . '/forker.php' ] ),
			[ [ 'pipe', 'r' ], [ 'pipe', 'w' ] ],
			$this->forker_pipes
		);
		fwrite( $this->forker_pipes[0], base64_encode( serialize( [ $arguments, $environment, $directory, $files ] ) ) . "\n" );
		$code = fgets( $this->forker_pipes[1] );
		if ( false === $code ) {
			throw new Failed( 'the process that forks WP-CLI has ended' );
		}
		return (int) $code;
	}

	/**
	 * Waits until the agent that was started with the arguments `told` and this token can catch SIGALRM, and
	 * returns its process id. The agent is a process of this host, also when it runs in a sandbox. Until the
	 * signal arrives, only the deadline of the run ends the agent, also on a slow machine.
	 */
	public function waiting( string $token ): int {
		set_error_handler( static fn(): bool => true );
		try {
			for ( $until = microtime( true ) + 60; microtime( true ) < $until; usleep( 20000 ) ) {
				foreach ( glob( '/proc/[0-9]*' ) as $process ) {
					if ( ! str_ends_with( (string) file_get_contents( "$process/cmdline" ), "agent.php\0told\0$token\0" ) ) {
						continue;
					}
					// SIGALRM is signal 14, so bit 13 of the mask of caught signals. PHP itself catches SIGUSR1 from its start.
					if ( preg_match( '/^SigCgt:\s*[0-9a-f]+([0-9a-f]{4})$/m', (string) file_get_contents( "$process/status" ), $caught ) && hexdec( $caught[1] ) & 0x2000 ) {
						return (int) basename( $process );
					}
				}
			}
		} finally {
			restore_error_handler();
		}
		throw new Failed( "no agent waits for $token" );
	}

	/** Sends SIGALRM to the agent with this token, which waits for the signal before it continues. */
	public function wake( string $token ): void {
		$this->true( posix_kill( $this->waiting( $token ), SIGALRM ), "the agent $token cannot be woken" );
	}

	/** Waits until no run of this site is alive. */
	public function idle(): void {
		$this->as( 'administrator' );
		for ( $until = microtime( true ) + 60; 0 < $this->ok( $this->ability( 'list-runs', [ 'status' => 'running' ] ) )['total']; usleep( 50000 ) ) {
			if ( microtime( true ) > $until ) {
				throw new Failed( 'a run is still alive' );
			}
		}
	}

	public function as( string $role ): void {
		$user = get_user_by( 'login', 'administrator' === $role ? 'admin' : $role );
		wp_set_current_user( $user ? $user->ID : 0 );
	}

	public function ability( string $name, mixed $input = null ): mixed {
		return wp_get_ability( 'wp-codebox/' . $name )->execute( $input );
	}

	/** Restores the sample plugin and runs the test agent on it as an administrator; returns the result of run-agent-task. */
	public function made( string $what = 'fix', array $more = [] ): array {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $file ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $file, WP_PLUGIN_DIR . '/sample/' . $file );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
		$this->as( 'administrator' );
		return $this->ok( $this->ability( 'run-agent-task', $more + [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php ' . $what ] ) );
	}

	/** Calls the body while these example host plugins, in this order, handle applies, reviews and staging. */
	public function hosts( array $plugins, callable $body ): mixed {
		global $wp_filter;
		$hooks = array_flip( [ 'wp_codebox_apply_approved_artifact', 'wp_codebox_stage_pending_apply_artifact', 'wp_codebox_review_artifact_decision' ] );
		$kept  = array_intersect_key( $wp_filter, $hooks );
		foreach ( array_keys( $hooks ) as $hook ) {
			unset( $wp_filter[ $hook ] );
		}
		foreach ( $plugins as $plugin ) {
			include WP_PLUGIN_DIR . "/$plugin/$plugin.php";
		}
		try {
			return $body();
		} finally {
			foreach ( array_keys( $hooks ) as $hook ) {
				unset( $wp_filter[ $hook ] );
			}
			foreach ( $kept as $hook => $filters ) {
				$wp_filter[ $hook ] = $filters;
			}
		}
	}

	/** Calls the body while the filter is added to the hook. */
	public function filtered( string $hook, callable $filter, callable $body, int $accepted = 3 ): mixed {
		add_filter( $hook, $filter, 20, $accepted );
		try {
			return $body();
		} finally {
			remove_filter( $hook, $filter, 20 );
		}
	}

	/** Returns the newest audit records of this site, oldest first. */
	public function audited( int $count = 1 ): array {
		return \WPCodebox\Native\Artifacts::auditRecords( ( new \WPCodebox\Host\Site( new \WPCodebox\Host\InstalledCode() ) )->id(), -$count, $count )['records'];
	}

	/** Changes the patch in a stored bundle, so that its verification fails. */
	public function tamper( array $made ): void {
		file_put_contents( $made['paths']['patch'], str_replace( 'hello', 'hacked', (string) file_get_contents( $made['paths']['patch'] ) ) );
	}
}
