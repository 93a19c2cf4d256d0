<?php
/**
 * Serves the test site and a scripted model over real HTTP on loopback during a test.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Tests;

final class Http {

	/** API key that the scripted model server accepts. */
	public const KEY = 'example-key-0123456789abcdef';

	/** Processes of the started servers. */
	private array $processes = [];

	/** @param Harness $t Test supervisor. */
	public function __construct( private readonly Harness $t ) {}

	/** Serves the site with PHP's built-in server; returns its port. */
	public function site( array $environment = [ 'WP_ENVIRONMENT_TYPE' => 'local' ] ): int {
		return $this->serve( array_merge( $this->t->php_flags, Harness::SHARED_OPCODES ), [ '-t', rtrim( ABSPATH, '/' ) ], $environment + [ 'EXAMPLE_AI_API_KEY' => self::KEY ] );
	}

	/** Starts the model server of the tests with these scripts; returns its address and log file. */
	public function model( array $scripts ): array {
		$directory = getenv( 'TEST_WORK' ) . '/model-' . bin2hex( random_bytes( 4 ) );
		mkdir( $directory . '/scripts', 0755, true );
		foreach ( $scripts as $name => $script ) {
			file_put_contents( "$directory/scripts/$name.json", json_encode( $script ) );
		}
		$this->start( [ 'python3', getenv( 'TEST_ROOT' ) . '/tests/model-server/server.py', '--script', "$directory/scripts", '--port', '0', '--port-file', "$directory/port", '--log', "$directory/log", '--key', self::KEY ], [] );
		$this->wait( static fn(): bool => is_file( "$directory/port" ) && '' !== trim( (string) file_get_contents( "$directory/port" ) ), 'the model server did not start' );
		return [ 'http://localhost:' . trim( (string) file_get_contents( "$directory/port" ) ), "$directory/log" ];
	}

	/** Starts a provider that returns the received request or misbehaves as its path says; returns its address. */
	public function provider(): string {
		return 'http://localhost:' . $this->serve( [ '-n' ], [ getenv( 'TEST_FIXTURES' ) . '/provider.php' ], [] );
	}

	/** Sends one request to an ability; returns status and document. */
	public function ability( int $port, string $name, array $input, array $options = [] ): array {
		$headers = [ 'Host: localhost', 'Content-Type: application/json', 'Connection: close' ];
		if ( isset( $options['password'] ) ) {
			$headers[] = 'Authorization: Basic ' . base64_encode( $options['user'] . ':' . $options['password'] );
		}
		$context = stream_context_create(
			[
				'http' => [
					'method'        => 'POST',
					'header'        => implode( "\r\n", array_merge( $headers, $options['headers'] ?? [] ) ),
					'content'       => json_encode( [ 'input' => (object) $input ] ),
					'ignore_errors' => true,
					'timeout'       => 60,
				],
			]
		);
		$body    = (string) file_get_contents( "http://127.0.0.1:$port/index.php?rest_route=/wp-abilities/v1/abilities/wp-codebox/$name/run", false, $context );
		preg_match( '~^HTTP/\S+ (\d+)~', $http_response_header[0] ?? '', $status );
		return [ (int) ( $status[1] ?? 0 ), json_decode( $body, true ) ?? [ 'text' => $body ] ];
	}

	/** Creates a login session of the user; returns its cookie and REST nonce as request headers. */
	public function session( int $user ): array {
		$until                       = time() + 600;
		$token                       = \WP_Session_Tokens::get_instance( $user )->create( $until );
		$cookie                      = wp_generate_auth_cookie( $user, $until, 'logged_in', $token );
		$_COOKIE[ LOGGED_IN_COOKIE ] = $cookie;
		wp_set_current_user( $user );
		$nonce = wp_create_nonce( 'wp_rest' );
		wp_set_current_user( 0 );
		unset( $_COOKIE[ LOGGED_IN_COOKIE ] );
		return [ 'Cookie: ' . LOGGED_IN_COOKIE . '=' . rawurlencode( $cookie ), 'X-WP-Nonce: ' . $nonce ];
	}

	/** Stops the started servers. */
	public function close(): void {
		foreach ( $this->processes as $process ) {
			proc_terminate( $process, 15 );
			proc_close( $process );
		}
		$this->processes = [];
	}

	/** Starts PHP's built-in server; returns its port, which the kernel chooses: another process could take a port picked in advance. */
	private function serve( array $flags, array $more, array $environment ): int {
		$log  = getenv( 'TEST_WORK' ) . '/served-' . bin2hex( random_bytes( 4 ) ) . '.log';
		$port = 0;
		$this->start( array_merge( [ PHP_BINARY ], $flags, [ '-S', '127.0.0.1:0' ], $more ), $environment, $log );
		$this->wait(
			static function () use ( $log, &$port ): bool {
				preg_match( '~Development Server \(http://127\.0\.0\.1:(\d+)\) started~', (string) file_get_contents( $log ), $found );
				return 0 < $port = (int) ( $found[1] ?? 0 );
			},
			'the server did not start'
		);
		return $port;
	}

	/** Returns the log output of all started servers. */
	public function said(): string {
		return implode( '', array_map( 'file_get_contents', glob( getenv( 'TEST_WORK' ) . '/served*.log' ) ) );
	}

	private function start( array $command, array $environment, ?string $log = null ): void {
		$log             ??= getenv( 'TEST_WORK' ) . '/served.log';
		$this->processes[] = proc_open( $command, [ [ 'file', '/dev/null', 'r' ], [ 'file', $log, 'a' ], [ 'file', $log, 'a' ] ], $pipes, getenv( 'TEST_WORK' ), array_merge( getenv(), $environment ) );
	}

	private function wait( callable $condition, string $what ): void {
		for ( $until = microtime( true ) + 60; ! $condition(); usleep( 20000 ) ) {
			if ( microtime( true ) > $until ) {
				throw new Failed( $what . "\n" . substr( $this->said(), -1500 ) );
			}
		}
	}
}
