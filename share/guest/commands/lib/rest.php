<?php
/**
 * Sends REST requests within this process, without a web server.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Builds the REST request that the command's arguments describe.
 *
 * @param Arguments $arguments Arguments method, path, headers-json, params-json, body, body-json.
 */
function rest_request( Arguments $arguments ): \WP_REST_Request {
	$method = strtoupper( $arguments->text( 'method', 'GET' ) );
	$target = $arguments->required( 'path' );
	$route  = (string) parse_url( 'http://localhost/' . ltrim( $target, '/' ), PHP_URL_PATH );
	$route  = '/' . ltrim( (string) preg_replace( '~^/+wp-json(?=/|$)~', '', rawurldecode( $route ) ), '/' );
	parse_str( (string) parse_url( 'http://localhost/' . ltrim( $target, '/' ), PHP_URL_QUERY ), $query );
	if ( '/' === $route && isset( $query['rest_route'] ) ) {
		$route = '/' . ltrim( (string) $query['rest_route'], '/' );
		unset( $query['rest_route'] );
	}
	$request = new \WP_REST_Request( $method, $route );
	$params  = $arguments->object( 'params-json' );
	$body    = $arguments->value( 'body-json' );
	if ( null !== $body && '' !== $arguments->text( 'body' ) ) {
		throw Refusal::input( 'give either body or body-json' );
	}
	$request->set_query_params( in_array( $method, array( 'GET', 'HEAD', 'OPTIONS' ), true ) ? $params + $query : $query );
	if ( ! in_array( $method, array( 'GET', 'HEAD', 'OPTIONS' ), true ) && array() !== $params ) {
		$request->set_body_params( $params );
	}
	foreach ( $arguments->object( 'headers-json' ) as $name => $value ) {
		if ( ! is_scalar( $value ) ) {
			throw Refusal::input( 'headers-json must be an object of strings' );
		}
		$request->set_header( (string) $name, (string) $value );
	}
	if ( null !== $body ) {
		$request->set_header( 'Content-Type', 'application/json' );
		$request->set_body( (string) json_encode( $body, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE ) );
	} elseif ( '' !== $arguments->text( 'body' ) ) {
		$request->set_body( $arguments->text( 'body' ) );
	}
	return $request;
}

/**
 * Sends the REST request within this process and returns the response.
 *
 * @param Arguments $arguments Arguments of the call.
 * @return array{method: string, path: string, status: int, headers: object, data: mixed}
 */
function rest( Arguments $arguments ): array {
	$request  = rest_request( $arguments );
	$server   = rest_get_server();
	$response = rest_do_request( $request );
	$headers  = array();
	foreach ( $response->get_headers() as $name => $value ) {
		$headers[ (string) $name ] = is_scalar( $value ) ? (string) $value : '';
	}
	return array(
		'method'  => $request->get_method(),
		'path'    => $request->get_route(),
		'status'  => (int) $response->get_status(),
		'headers' => (object) $headers,
		'data'    => $server->response_to_data( $response, false ),
	);
}
