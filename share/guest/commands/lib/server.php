<?php
/**
 * Starts a web server inside the guest for one request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/page.php';

/**
 * Starts PHP's web server, sends the request, stops the server.
 */
final class Server {
	/** Maximum number of body bytes that are kept in memory. */
	private const HELD = 1 << 20;
	/** Maximum number of body bytes that are reported. */
	private const EXCERPT = 4096;
	/** Maximum number of body bytes that are read. */
	private const BODY = 32 << 20;
	/** Time limit of one request, in seconds. */
	private const SECONDS = 120;

	/**
	 * Requests the page that the command's arguments name, and reports the response.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 * @return array<string,mixed> Result document.
	 */
	public function load( Arguments $arguments ): array {
		$surface = $arguments->word( 'surface', array( 'frontend', 'admin', 'login', 'rest' ), 'frontend' );
		$target  = page_target( $arguments, array( 'frontend' => '/', 'admin' => '/wp-admin/', 'login' => '/wp-login.php', 'rest' => '/?rest_route=/' )[ $surface ] );
		$method  = $arguments->word( 'method', array( 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS' ), $arguments->has( 'body' ) ? 'POST' : 'GET' );
		$expect  = $arguments->has( 'expect-status' ) ? $arguments->number( 'expect-status', 200, 100, 599 ) : null;
		$answer  = $this->request( $method, $target, $arguments );
		$seen    = $answer['seen'];
		$status   = $answer['status'];
		$location = $status >= 300 && $status < 400 ? $answer['headers']['location'] ?? null : null;
		$request  = new Page_Request( $surface, $method, $target, form_fields( $arguments ) );
		$document = array_merge(
			page_result( $request, 'server-http', $status, $answer['headers'], $location, $seen ),
			array(
				'title'      => page_title( $answer['held'] ),
				'body'       => $answer['body'],
				'durationMs' => $answer['ms'],
			)
		);
		$fault    = page_fault( $status, $expect, isset( $seen['fatal'] ) ? (array) $seen['fatal'] : null );
		return null === $fault ? $document : throw new Refusal( 'page-error', $fault, $document );
	}

	/**
	 * Starts the server, sends one request with the headers and the body of the command's arguments, and stops the
	 * server. Returns the response with its duration and what Page::seen() returned; of a static file, that is empty.
	 *
	 * @param string    $method    HTTP method.
	 * @param string    $target    Path and query.
	 * @param Arguments $arguments Guest command arguments with headers-json and body.
	 * @return array{status: int, type: string, headers: array<string,string>, held: string, body: array<string,mixed>, seen: array<string,mixed>, ms: float}
	 */
	public function request( string $method, string $target, Arguments $arguments ): array {
		$head    = $this->head( $arguments->object( 'headers-json' ), $arguments->text( 'body' ) );
		$watched = (string) tempnam( sys_get_temp_dir(), 'page-' );
		$port    = 0;
		$process = $this->start( $watched, $port );
		try {
			$start  = hrtime( true );
			$answer = $this->ask( $process, $port, "$method $target HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n$head\r\n" . $arguments->text( 'body' ) );
			$took   = ( hrtime( true ) - $start ) / 1e6;
			$seen   = self::observations( $process, $watched );
		} finally {
			proc_terminate( $process, 9 );
			proc_close( $process );
			unlink( $watched );
		}
		return $answer + array(
			'seen' => $seen,
			'ms'   => round( $took, 3 ),
		);
	}

	/**
	 * Returns what the script of a request observed; a response can end before the script's shutdown functions have
	 * written it.
	 *
	 * @param resource $process Process of the server.
	 * @param string   $watched File with the observations.
	 * @return array<string,mixed>
	 */
	private static function observations( $process, string $watched ): array {
		$end = hrtime( true ) + self::SECONDS * 1000000000;
		while ( true ) {
			$running = proc_get_status( $process )['running'];
			$lines   = explode( "\n", (string) file_get_contents( $watched ) );
			// An empty file means a static file; otherwise, the second line has the observations.
			if ( array( '' ) === $lines || isset( $lines[2] ) ) {
				return (array) json_decode( $lines[1] ?? '', false );
			}
			if ( ! $running || hrtime( true ) > $end ) {
				throw Refusal::failed( 'PHP ended without reporting how the request ended; look for a plugin that kills the process' );
			}
			usleep( 10000 );
		}
	}

	/**
	 * Returns the header lines of the request that is sent.
	 *
	 * @param array<string,mixed> $headers Requested headers.
	 * @param string              $body    Request body.
	 */
	public function head( array $headers, string $body ): string {
		$lines = '' === $body ? '' : 'Content-Length: ' . strlen( $body ) . "\r\n";
		foreach ( $headers as $name => $value ) {
			if ( ! is_scalar( $value ) || 1 !== preg_match( '/^[A-Za-z0-9!#$%&\'*+.^_`|~-]{1,100}$/', (string) $name ) || 1 === preg_match( '/[\r\n\0]/', (string) $value ) || in_array( strtolower( (string) $name ), array( 'host', 'connection', 'content-length', 'transfer-encoding' ), true ) ) {
				throw Refusal::input( sprintf( 'headers-json has %s, which is not a request header or is set by the command itself', Arguments::shown( $name ) ) );
			}
			$lines .= "$name: $value\r\n";
		}
		return $lines;
	}

	/**
	 * Starts PHP's built-in web server.
	 *
	 * @param string $watched File that the server writes its observations to.
	 * @param int    $port    Port of the server.
	 * @return resource Process of the server.
	 */
	public function start( string $watched, int &$port ) {
		$free = stream_socket_server( 'tcp://127.0.0.1:0' );
		if ( ! is_resource( $free ) ) {
			throw Refusal::unsupported( 'the guest cannot listen on a port of 127.0.0.1; use wordpress.simulated-frontend-page-load' );
		}
		$port = (int) substr( (string) strrchr( (string) stream_socket_get_name( $free, false ), ':' ), 1 );
		fclose( $free );
		$process = proc_open(
			array( PHP_BINARY, '-d', 'display_errors=0', '-d', 'html_errors=0', '-d', 'memory_limit=' . ini_get( 'memory_limit' ), '-d', 'auto_prepend_file=' . __DIR__ . '/server-prepend.php', '-S', "127.0.0.1:$port", '-t', root() . '/wordpress', __DIR__ . '/server-router.php' ),
			array( array( 'file', '/dev/null', 'r' ), array( 'file', '/dev/null', 'w' ), array( 'file', '/dev/null', 'w' ) ),
			$pipes,
			root() . '/wordpress',
			array( 'CODEBOX_PAGE_DOCUMENT' => $watched ) + getenv()
		);
		if ( ! is_resource( $process ) ) {
			throw Refusal::failed( 'the web server could not be started' );
		}
		return $process;
	}

	/**
	 * Sends the request and reads the response.
	 *
	 * @param resource $process Process of the server.
	 * @param int      $port    Port of the server.
	 * @param string   $request Request text.
	 * @return array{status: int, type: string, headers: array<string,string>, held: string, body: array<string,mixed>}
	 */
	public function ask( $process, int $port, string $request ): array {
		$socket = false;
		for ( $i = 0; $i < 500 && ! is_resource( $socket ) && proc_get_status( $process )['running']; $i++ ) {
			set_error_handler( static fn (): bool => true );
			$socket = stream_socket_client( "tcp://127.0.0.1:$port", $code, $message, 1.0 );
			restore_error_handler();
			is_resource( $socket ) || usleep( 10000 );
		}
		if ( ! is_resource( $socket ) ) {
			throw Refusal::failed( 'the web server did not begin to listen' );
		}
		stream_set_timeout( $socket, self::SECONDS );
		fwrite( $socket, $request );
		$status  = 0;
		$headers = array();
		$line    = (string) fgets( $socket, 65536 );
		if ( 1 === preg_match( '~^HTTP/\d\.\d (\d{3})~', $line, $found ) ) {
			$status = (int) $found[1];
		}
		while ( false !== ( $line = fgets( $socket, 65536 ) ) && '' !== trim( $line ) ) {
			list( $name, $value ) = explode( ':', trim( $line ), 2 ) + array( '', '' );

			$name = strtolower( cut( $name, 100 ) );
			if ( count( $headers ) < 100 ) {
				// Only the name of a cookie is reported.
				$headers[ $name ] = 'set-cookie' === $name ? ltrim( ( $headers[ $name ] ?? '' ) . ', ' . strtok( trim( $value ), '=' ), ', ' ) : ( is_secret_name( $name ) ? MASK : cut( trim( $value ), 1000 ) );
			}
		}
		$digest = hash_init( 'sha256' );
		$bytes  = 0;
		$held   = '';
		while ( ! feof( $socket ) && $bytes < self::BODY ) {
			$piece = (string) fread( $socket, 65536 );
			if ( '' === $piece && stream_get_meta_data( $socket )['timed_out'] ) {
				throw Refusal::failed( sprintf( 'the page did not end within %d seconds', self::SECONDS ) );
			}
			$bytes += strlen( $piece );
			hash_update( $digest, $piece );
			$held .= substr( $piece, 0, max( 0, self::HELD - strlen( $held ) ) );
		}
		if ( 0 === $status ) {
			throw Refusal::failed( 'the web server ended before it answered' );
		}
		return array(
			'status'  => $status,
			'type'    => $headers['content-type'] ?? '',
			'headers' => $headers,
			'held'    => $held,
			'body'    => array(
				'bytes'   => $bytes,
				'sha256'  => hash_final( $digest ),
				'excerpt' => plain_text( beginning( $held, self::EXCERPT ), self::EXCERPT + 8 ),
			),
		);
	}
}

/**
 * Returns the fields of a request body that is a form; null for another body.
 *
 * @param Arguments $arguments Guest command arguments with headers-json and body.
 * @return ?array<string,mixed>
 */
function form_fields( Arguments $arguments ): ?array {
	$headers = array_change_key_case( $arguments->object( 'headers-json' ) );
	if ( ! str_starts_with( strtolower( (string) ( $headers['content-type'] ?? '' ) ), 'application/x-www-form-urlencoded' ) ) {
		return null;
	}
	parse_str( $arguments->text( 'body' ), $fields );
	return $fields;
}
