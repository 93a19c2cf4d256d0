<?php
/**
 * The test site and a scripted model over real HTTP, on loopback, for as long as a test takes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Tests;

final class Http {

	/** Key of the scripted model. */
	public const KEY = 'example-key-0123456789abcdef';

	/** Processes that were started. */
	private array $processes = [];

	/** @param Harness $t Runner. */
	public function __construct( private readonly Harness $t ) {}

	/** The site under PHP's own server; answers its port. */
	public function site( array $environment = [ 'WP_ENVIRONMENT_TYPE' => 'local' ] ): int {
		$port = $this->free_port();
		$this->start(
			array_merge( [ PHP_BINARY ], $this->t->php_flags, [ '-S', "127.0.0.1:$port", '-t', rtrim( ABSPATH, '/' ) ] ),
			$environment + [ 'EXAMPLE_AI_API_KEY' => self::KEY ]
		);
		$this->wait( static fn(): bool => self::probe( $port ), "no server on port $port" );
		return $port;
	}

	/** The model server of the tests with these scripts; answers address and log file. */
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

	/** A provider that answers with what it was sent, or misbehaves as its path says; answers its address. */
	public function provider(): string {
		$port = $this->free_port();
		$this->start( [ PHP_BINARY, '-n', '-S', "127.0.0.1:$port", getenv( 'TEST_FIXTURES' ) . '/provider.php' ], [] );
		$this->wait( static fn(): bool => self::probe( $port ), "no server on port $port" );
		return "http://localhost:$port";
	}

	/** One request to an ability; answers status and document. */
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

	/** Cookie and nonce of a session of a user, as headers. */
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

	/** Ends what was started. */
	public function close(): void {
		foreach ( $this->processes as $process ) {
			proc_terminate( $process, 15 );
			proc_close( $process );
		}
		$this->processes = [];
	}

	private function start( array $command, array $environment ): void {
		$log               = getenv( 'TEST_WORK' ) . '/servers.log';
		$this->processes[] = proc_open( $command, [ [ 'file', '/dev/null', 'r' ], [ 'file', $log, 'a' ], [ 'file', $log, 'a' ] ], $pipes, getenv( 'TEST_WORK' ), array_merge( getenv(), $environment ) );
	}

	private function wait( callable $condition, string $what ): void {
		for ( $until = microtime( true ) + 20; ! $condition(); usleep( 20000 ) ) {
			if ( microtime( true ) > $until ) {
				throw new Failed( $what . "\n" . substr( (string) file_get_contents( getenv( 'TEST_WORK' ) . '/servers.log' ), -1500 ) );
			}
		}
	}

	private function free_port(): int {
		$socket = stream_socket_server( 'tcp://127.0.0.1:0' );
		$name   = (string) stream_socket_get_name( $socket, false );
		fclose( $socket );
		return (int) substr( (string) strrchr( $name, ':' ), 1 );
	}

	private static function probe( int $port ): bool {
		set_error_handler( static fn(): bool => true );
		$socket = fsockopen( '127.0.0.1', $port, $number, $text, 0.5 );
		restore_error_handler();
		if ( false === $socket ) {
			return false;
		}
		fclose( $socket );
		return true;
	}
}
