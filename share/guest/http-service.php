<?php
/**
 * HTTP server of a guest that gives every request the same response and prints a record of it.
 *
 * Reads its settings from standard input: {address, status, body}. A record is one line of JSON: {method,
 * target, headers, body, bodyBytes}. Names of headers are in lower case; of a body, the first 64 KiB are
 * recorded, as text. Serves any number of clients at a time, one request for each connection.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

const CODEBOX_HEAD = 65536;
const CODEBOX_BODY = 8388608;
const CODEBOX_KEPT = 65536;

$settings = json_decode( (string) stream_get_contents( STDIN ), true );
$server   = stream_socket_server( 'tcp://' . $settings['address'], $errno, $error );
if ( false === $server ) {
	fwrite( STDERR, "cannot listen: $error\n" );
	exit( 1 );
}

/**
 * Returns the request in the bytes of a connection, null while it is incomplete, false when it is not HTTP.
 *
 * @param string $bytes Bytes read so far.
 */
$read = static function ( string $bytes ): array|false|null {
	$end = strpos( $bytes, "\r\n\r\n" );
	if ( false === $end ) {
		return strlen( $bytes ) > CODEBOX_HEAD ? false : null;
	}
	$lines = explode( "\r\n", substr( $bytes, 0, $end ) );
	$first = explode( ' ', array_shift( $lines ) );
	if ( 3 !== count( $first ) || ! str_starts_with( $first[2], 'HTTP/1.' ) ) {
		return false;
	}
	$headers = array();
	foreach ( $lines as $line ) {
		$pair                                 = explode( ':', $line, 2 );
		$headers[ strtolower( trim( $pair[0] ) ) ] = trim( $pair[1] ?? '' );
	}
	$body = substr( $bytes, $end + 4 );
	if ( str_contains( strtolower( $headers['transfer-encoding'] ?? '' ), 'chunked' ) ) {
		if ( ! str_contains( $body, "0\r\n\r\n" ) ) {
			return strlen( $body ) > CODEBOX_BODY ? false : null;
		}
		$parts = '';
		while ( 1 === preg_match( '/^([0-9a-f]{1,8})[^\r\n]*\r\n/i', $body, $found ) && '' !== trim( $found[1], '0' ) ) {
			$size   = (int) hexdec( $found[1] );
			$parts .= substr( $body, strlen( $found[0] ), $size );
			$body   = substr( $body, strlen( $found[0] ) + $size + 2 );
		}
		$body = $parts;
	} else {
		$length = (int) ( $headers['content-length'] ?? 0 );
		if ( $length < 0 || $length > CODEBOX_BODY ) {
			return false;
		}
		if ( strlen( $body ) < $length ) {
			return null;
		}
		$body = substr( $body, 0, $length );
	}
	return array(
		'method'    => $first[0],
		'target'    => $first[1],
		'headers'   => (object) $headers,
		'body'      => substr( $body, 0, CODEBOX_KEPT ),
		'bodyBytes' => strlen( $body ),
	);
};

$reason = 200 === $settings['status'] ? 'OK' : 'Status';
$empty  = in_array( $settings['status'], array( 204, 304 ), true );
$body   = $empty ? '' : $settings['body'];
$type   = null !== json_decode( $body ) ? 'application/json' : 'text/plain; charset=utf-8';
$head   = "HTTP/1.1 {$settings['status']} $reason\r\nConnection: close\r\n"
	. ( $empty ? '' : "Content-Type: $type\r\nContent-Length: " . strlen( $body ) . "\r\n" ) . "\r\n";

/** Bytes read so far, and bytes to write, by connection. */
$clients = array();
$got     = array();
$answers = array();
while ( true ) {
	$reads  = array_merge( array( $server ), array_values( array_diff_key( $clients, $answers ) ) );
	$writes = array_values( array_intersect_key( $clients, $answers ) );
	$none   = null;
	if ( false === stream_select( $reads, $writes, $none, null ) ) {
		continue;
	}
	foreach ( $reads as $stream ) {
		if ( $stream === $server ) {
			$client = stream_socket_accept( $server, 0 );
			if ( false !== $client ) {
				stream_set_blocking( $client, false );
				$clients[ (int) $client ] = $client;
				$got[ (int) $client ]     = '';
			}
			continue;
		}
		$id    = (int) $stream;
		$bytes = fread( $stream, 65536 );
		if ( '' === $bytes || false === $bytes ) {
			if ( false === $bytes || feof( $stream ) ) {
				unset( $clients[ $id ], $got[ $id ] );
				fclose( $stream );
			}
			continue;
		}
		$got[ $id ] .= $bytes;
		$request     = $read( $got[ $id ] );
		if ( null === $request ) {
			continue;
		}
		if ( false === $request ) {
			$answers[ $id ] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
			continue;
		}
		fwrite( STDOUT, json_encode( $request, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES ) . "\n" );
		$answers[ $id ] = $head . ( 'HEAD' === $request['method'] ? '' : $body );
	}
	foreach ( $writes as $stream ) {
		$id   = (int) $stream;
		$sent = fwrite( $stream, $answers[ $id ] );
		if ( false !== $sent && $sent < strlen( $answers[ $id ] ) ) {
			$answers[ $id ] = substr( $answers[ $id ], $sent );
			continue;
		}
		unset( $clients[ $id ], $got[ $id ], $answers[ $id ] );
		fclose( $stream );
	}
}
