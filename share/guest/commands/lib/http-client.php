<?php
/**
 * Sends one HTTP request, to the guest's own site or to another host.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/server.php';

/** Size limit of the response body in the result, in bytes. */
const RESPONSE_BYTES = 262144;

/**
 * Sends the HTTP request that the command's arguments describe, and reports the response.
 *
 * @param Arguments $arguments Arguments method, url, headers-json, body, expect-status.
 * @return array<string,mixed> `wp-codebox/wordpress-http-response/v1`.
 */
function http_request( Arguments $arguments ): array {
	$url    = trim( $arguments->required( 'url' ) );
	// A path may leave out its slash, like wp-json/.
	$url    = 1 === preg_match( '~^(?:/|[A-Za-z][A-Za-z0-9+.-]*:)~', $url ) ? $url : "/$url";
	$method = $arguments->word( 'method', array( 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS' ), '' === $arguments->text( 'body' ) ? 'GET' : 'POST' );
	$target = own_target( $url );
	$start  = hrtime( true );
	$answer = null === $target
		? ask_outside( $url, $method, $arguments )
		: ask_own( $target, $method, $arguments );
	$seen   = $answer['seen'] ?? array();
	$fatal  = isset( $seen['fatal'] ) ? (array) $seen['fatal'] : null;
	$body   = $answer['held'];
	$json   = str_contains( $answer['type'], 'json' ) ? json_decode( $body, true ) : null;

	$document = array(
		'schema'     => 'wp-codebox/wordpress-http-response/v1',
		'url'        => cut( $url, 2000 ),
		'method'     => $method,
		'via'        => null === $target ? 'egress' : 'site',
		'status'     => $answer['status'],
		'headers'    => (object) $answer['headers'],
		'body'       => mb_strcut( mb_scrub( $body, 'UTF-8' ), 0, RESPONSE_BYTES, 'UTF-8' ),
		'bodyBytes'  => $answer['bytes'],
		'bodyCut'    => $answer['bytes'] > RESPONSE_BYTES,
		'durationMs' => round( ( hrtime( true ) - $start ) / 1e6, 3 ),
	);
	if ( null !== $json && $answer['bytes'] <= RESPONSE_BYTES ) {
		$document['json'] = $json;
	}
	$expected = '' !== $arguments->first( 'expect-status' ) ? $arguments->number( 'expect-status', 200, 100, 599 ) : null;
	if ( null !== $target ) {
		$document['phpErrors'] = php_errors( $seen );
	}
	if ( null !== $expected && $expected !== $answer['status'] ) {
		throw new Refusal( 'expect-status', page_fault( $answer['status'], $expected, $fatal ), $document );
	}
	$fault = page_fault( $answer['status'], $expected, $fatal );
	return null === $fault ? $document : throw new Refusal( 'page-error', $fault, $document );
}

/**
 * Returns path and query of a URL if it is one of the guest's own site; null otherwise.
 *
 * @param string $url URL or path.
 */
function own_target( string $url ): ?string {
	if ( str_starts_with( $url, '/' ) && ! str_starts_with( $url, '//' ) ) {
		return strtok( $url, '#' );
	}
	$parts = parse_url( $url );
	if ( ! is_array( $parts ) || ! in_array( $parts['scheme'] ?? '', array( 'http', 'https' ), true ) || '' === ( $parts['host'] ?? '' ) ) {
		throw Refusal::input( 'url must be a path of the site, like /shop/, or start with http:// or https://' );
	}
	$own = (string) parse_url( Entry::$call['url'], PHP_URL_HOST );
	if ( ! in_array( strtolower( $parts['host'] ), array( 'localhost', '127.0.0.1', $own ), true ) || isset( $parts['port'] ) ) {
		return null;
	}
	return ( $parts['path'] ?? '/' ) . ( isset( $parts['query'] ) ? '?' . $parts['query'] : '' );
}

/**
 * Sends a request to a web server that is started for the guest's own site.
 *
 * @param string    $target    Path and query.
 * @param string    $method    HTTP method.
 * @param Arguments $arguments Guest command arguments with headers and body.
 * @return array{status: int, type: string, headers: array<string,string>, held: string, bytes: int, seen: array<string,mixed>}
 */
function ask_own( string $target, string $method, Arguments $arguments ): array {
	if ( 1 === preg_match( '/[\x00-\x20\x7f]/', $target ) ) {
		throw Refusal::input( 'url has spaces or control characters; encode them' );
	}
	$answer = ( new Server() )->request( $method, $target, $arguments );
	return $answer + array( 'bytes' => $answer['body']['bytes'] );
}

/**
 * Sends a request to another host through the egress bridge, the proxy that applies the run's network policy.
 *
 * @param string    $url       URL to request.
 * @param string    $method    HTTP method.
 * @param Arguments $arguments Guest command arguments with headers and body.
 * @return array{status: int, type: string, headers: array<string,string>, held: string, bytes: int}
 */
function ask_outside( string $url, string $method, Arguments $arguments ): array {
	if ( '' === (string) getenv( 'http_proxy' ) ) {
		throw new Refusal( 'egress-denied', 'this guest has no network access: allow the host in the policy of the run' );
	}
	if ( ! function_exists( 'curl_init' ) ) {
		throw Refusal::unsupported( 'the PHP of this guest has no curl' );
	}
	$headers = array();
	$lines   = array();
	$held    = '';
	$bytes   = 0;
	foreach ( $arguments->object( 'headers-json' ) as $name => $value ) {
		if ( ! is_scalar( $value ) || 1 === preg_match( '/[\r\n\0]/', $name . $value ) ) {
			throw Refusal::input( 'headers-json must be an object of strings without line ends' );
		}
		$lines[] = "$name: $value";
	}
	$curl = curl_init( $url );
	curl_setopt_array(
		$curl,
		array(
			CURLOPT_CUSTOMREQUEST  => $method,
			CURLOPT_NOBODY         => 'HEAD' === $method,
			CURLOPT_HTTPHEADER     => $lines,
			CURLOPT_FOLLOWLOCATION => false,
			CURLOPT_PROTOCOLS      => CURLPROTO_HTTP | CURLPROTO_HTTPS,
			CURLOPT_TIMEOUT        => 60,
			CURLOPT_HEADERFUNCTION => static function ( $curl, string $line ) use ( &$headers ): int {
				if ( str_contains( $line, ':' ) && count( $headers ) < 100 ) {
					list( $name, $value ) = explode( ':', trim( $line ), 2 );

					$name             = strtolower( cut( $name, 100 ) );
					$headers[ $name ] = 'set-cookie' === $name || is_secret_name( $name ) ? MASK : cut( trim( $value ), 1000 );
				}
				return strlen( $line );
			},
			CURLOPT_WRITEFUNCTION  => static function ( $curl, string $piece ) use ( &$held, &$bytes ): int {
				$bytes += strlen( $piece );
				$held  .= substr( $piece, 0, max( 0, RESPONSE_BYTES + 4 - strlen( $held ) ) );
				return $bytes > 32 << 20 ? 0 : strlen( $piece );
			},
		) + ( '' === $arguments->text( 'body' ) ? array() : array( CURLOPT_POSTFIELDS => $arguments->text( 'body' ) ) )
	);
	if ( false === curl_exec( $curl ) ) {
		throw new Refusal( 'unreachable', 'no answer: ' . curl_error( $curl ) );
	}
	return array(
		'status'  => (int) curl_getinfo( $curl, CURLINFO_RESPONSE_CODE ),
		'type'    => (string) curl_getinfo( $curl, CURLINFO_CONTENT_TYPE ),
		'headers' => $headers,
		'held'    => $held,
		'bytes'   => $bytes,
	);
}
