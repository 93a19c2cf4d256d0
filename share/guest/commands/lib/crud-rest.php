<?php
/**
 * Operations on an object that a route of the REST API offers.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Runs the operation as a REST request within this process.
 *
 * @param Crud_Request $request Operation as requested.
 * @return array<string,mixed> Members of the result.
 */
function crud_rest( Crud_Request $request ): array {
	$route = $request->route();
	if ( '' === $route ) {
		throw Refusal::input( 'resource.route must be the route of the REST API, like /wp/v2/posts' );
	}
	$route = '/' . ltrim( (string) preg_replace( '~^/?wp-json(?=/|$)~', '', (string) strtok( $route, '?' ) ), '/' );
	$id    = $request->identifier( 'id' );
	if ( null !== $id ) {
		$route = rtrim( $route, '/' ) . '/' . rawurlencode( (string) $id );
	}
	$method = match ( $request->operation ) {
		'create' => 'POST',
		'update' => 'PUT',
		'delete' => 'DELETE',
		default => 'GET',
	};
	$call = new \WP_REST_Request( $method, $route );
	$call->set_query_params( $request->member( 'query' ) + ( $request->option( 'force' ) ? array( 'force' => true ) : array() ) );
	if ( array() !== $request->member( 'data' ) ) {
		$call->set_header( 'Content-Type', 'application/json' );
		$call->set_body( (string) wp_json_encode( $request->member( 'data' ) ) );
	}
	$server   = rest_get_server();
	$response = rest_do_request( $call );
	$status   = (int) $response->get_status();
	$data     = plain( $server->response_to_data( $response, false ), 65536 );
	$members  = array(
		'http' => array(
			'method' => $method,
			'route'  => $route,
			'status' => $status,
		),
	) + ( 'list' === $request->operation && is_array( $data ) && array_is_list( $data ) ? array(
		'items' => $data,
		'count' => count( $data ),
	) : array( 'item' => $data ) );
	if ( $status >= 400 ) {
		throw Refusal::failed( sprintf( 'the route %s answered with %d: %s', $route, $status, cut( (string) ( is_array( $data ) ? $data['message'] ?? '' : '' ), 300 ) ), $members );
	}
	if ( in_array( $request->operation, array( 'create', 'update', 'delete' ), true ) ) {
		$members['effects'] = array(
			array(
				'effect' => $request->operation . 'd',
				'kind'   => 'rest',
				'id'     => is_array( $data ) ? $data['id'] ?? $id : $id,
			),
		);
	}
	return $members;
}
