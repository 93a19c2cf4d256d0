<?php
/**
 * Sends form actions and AJAX actions of wp-admin to the guest's web server.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/nonces.php';
require_once __DIR__ . '/http-client.php';
require_once __DIR__ . '/users.php';

/** Session name for an action whose caller names none. */
const ADMIN_ACTION_SESSION = 'codebox-admin-action';

/**
 * Sends the action that the command's arguments describe, and reports the response.
 *
 * @param Arguments $arguments Arguments action-json, destructive-boundary-json.
 * @return array<string,mixed> `wp-codebox/wordpress-admin-action-result/v1`.
 */
function admin_action( Arguments $arguments ): array {
	$asked    = $arguments->record( 'action-json', array( 'kind', 'action', 'method', 'params', 'user', 'role', 'session', 'nonce', 'nonceField' ) );
	$boundary = (string) ( $arguments->record( 'destructive-boundary-json', array( 'kind' ) )['kind'] ?? 'sandbox' );

	$kind   = (string) ( $asked['kind'] ?? 'post' );
	$name   = (string) ( $asked['action'] ?? '' );
	$method = strtoupper( (string) ( $asked['method'] ?? 'POST' ) );
	if ( ! in_array( $kind, array( 'post', 'ajax' ), true ) || 1 !== preg_match( '/^[A-Za-z0-9_.:-]{1,200}$/D', $name ) || ! in_array( $method, array( 'GET', 'POST' ), true ) ) {
		throw Refusal::input( 'action-json must be {kind: post|ajax, action: NAME, method: GET|POST, params: {…}}' );
	}
	if ( ! in_array( $boundary, array( 'sandbox', 'none' ), true ) ) {
		throw Refusal::input( 'the kind of destructive-boundary-json is sandbox or none' );
	}
	if ( 'none' === $boundary && 'GET' !== $method ) {
		throw new Refusal( 'destructive-boundary', 'the action may change the site, but the kind of destructive-boundary-json is none: leave it out' );
	}
	list( $user, $session ) = admin_session( $asked );
	$params = (array) ( $asked['params'] ?? array() );
	if ( '' !== (string) ( $asked['nonce'] ?? '' ) ) {
		$params[ (string) ( $asked['nonceField'] ?? '_wpnonce' ) ] = nonce( (string) $asked['nonce'] )['nonce'];
	}
	$params = array( 'action' => $name ) + $params;
	$path   = 'ajax' === $kind ? '/wp-admin/admin-ajax.php' : '/wp-admin/admin-post.php';
	$query  = http_build_query( $params );
	$head   = null === $session ? array() : array( 'Cookie' => Sessions::header( $session ) );
	$call   = array( 'headers-json' => (string) json_encode( $head + ( 'POST' === $method ? array( 'Content-Type' => 'application/x-www-form-urlencoded' ) : array() ) ) );
	$answer = ask_own( 'GET' === $method ? "$path?$query" : $path, $method, new Arguments( $call + ( 'POST' === $method ? array( 'body' => $query ) : array() ) ) );
	$json   = json_decode( $answer['held'], true );
	return array(
		'schema'              => 'wp-codebox/wordpress-admin-action-result/v1',
		'action'              => array(
			'kind'   => $kind,
			'name'   => $name,
			'method' => $method,
			'params' => array_keys( $params ),
		),
		'status'              => $answer['status'] < 400 ? 'ok' : 'refused',
		'httpStatus'          => $answer['status'],
		'redirect'            => $answer['headers']['location'] ?? null,
		'user'                => Users::row( $user ),
		'session'             => $session,
		'result'              => null === $json ? null : plain( $json ),
		'body'                => cut( mb_scrub( $answer['held'], 'UTF-8' ), 65536 ),
		'bodyBytes'           => $answer['bytes'],
		'destructiveBoundary' => array(
			'kind'      => $boundary,
			'satisfied' => true,
		),
	);
}

/**
 * Returns the acting user and the session whose cookies are sent. Without user, role and session the request
 * is anonymous.
 *
 * @param array<string,mixed> $asked Action of the call.
 * @return array{?\WP_User, ?string}
 */
function admin_session( array $asked ): array {
	$session = (string) ( $asked['session'] ?? '' );
	$login   = (string) ( $asked['user'] ?? '' );
	if ( '' === $session ) {
		if ( '' === $login . (string) ( $asked['role'] ?? '' ) ) {
			return array( null, null );
		}
		$session = ADMIN_ACTION_SESSION;
		Sessions::make( $session, Users::ensure( $login, (string) ( $asked['role'] ?? '' ) ), array( home_url() ) );
		$login = '';
	}
	$user = Sessions::become( $session, $login );
	wp_set_current_user( $user->ID );
	return array( $user, $session );
}
