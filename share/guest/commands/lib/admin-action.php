<?php
/**
 * Runs actions of wp-admin: form and AJAX actions through the guest's web server, hooks in this process.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/admin-action-request.php';
require_once __DIR__ . '/nonces.php';
require_once __DIR__ . '/http-client.php';
require_once __DIR__ . '/action.php';

/** Session name for an action whose caller names none. */
const ADMIN_ACTION_SESSION = 'codebox-admin-action';

/**
 * Runs the action that the command's arguments describe, and reports what it did.
 *
 * @param Admin_Action_Request $request Requested action.
 * @return array<string,mixed> `wp-codebox/wordpress-admin-action-result/v1`.
 */
function admin_action( Admin_Action_Request $request ): array {
	$document = result( 'wordpress-admin-action-result' ) + array(
		'action'                        => $request->document(),
		'disposableDestructiveBoundary' => (object) ( array( 'satisfied' => true ) + $request->boundary + array( 'kind' => 'sandbox' ) ),
		'familyDescriptors'             => ADMIN_ACTION_FAMILIES,
		'executed'                      => (object) array(),
		'diagnostics'                   => array(),
		'errors'                        => array(),
		'artifacts'                     => (object) array(),
		'artifactRefs'                  => array(),
		'performance'                   => (object) array(),
		'metadata'                      => (object) array(),
	);
	foreach ( ADMIN_ACTION_FAMILIES as $family ) {
		if ( $family['family'] === $request->family && 'unsupported' === $family['status'] ) {
			throw new Refusal( 'wp_codebox_command_unsupported', $family['reason'], array_merge( $document, array( 'status' => 'unsupported' ) ) );
		}
	}
	return 'admin-hook' === $request->family ? admin_hook( $request, $document ) : admin_request( $request, $document );
}

/**
 * Sends an action to the guest's web server, with the cookies of a session and an optional nonce.
 *
 * @param Admin_Action_Request $request  Requested action.
 * @param array<string,mixed>  $document Result document so far.
 * @return array<string,mixed>
 */
function admin_request( Admin_Action_Request $request, array $document ): array {
	list( $user, $session ) = admin_session( $request );
	$params = $request->params;
	if ( '' !== $request->nonce ) {
		$params[ $request->nonce_field ] = nonce( $request->nonce )['nonce'];
	}
	$params = array( 'action' => $request->name ) + $params;
	$path   = 'ajax' === $request->family ? '/wp-admin/admin-ajax.php' : '/wp-admin/admin-post.php';
	$posts  = 'POST' === $request->method;
	$query  = http_build_query( $posts ? $request->query : $request->query + $params );
	$body   = $posts ? http_build_query( $params ) : '';
	$head   = ( null === $session ? array() : array( 'Cookie' => Sessions::header( $session ) ) ) + ( $posts ? array( 'Content-Type' => 'application/x-www-form-urlencoded' ) : array() );
	$start  = hrtime( true );
	$answer = ask_own( '' === $query ? $path : "$path?$query", $request->method, new Arguments( array( 'headers-json' => (string) json_encode( $head ) ) + ( $posts ? array( 'body' => $body ) : array() ) ) );
	$took   = round( ( hrtime( true ) - $start ) / 1e6, 3 );
	$json   = json_decode( $answer['held'], true );
	$status = $answer['status'];
	return array_merge(
		$document,
		array(
			'status'      => $status < 400 ? 'ok' : 'error',
			'executed'    => (object) array(
				'family'     => $request->family,
				'path'       => $path,
				'method'     => $request->method,
				'params'     => array_keys( $params ),
				'httpStatus' => $status,
			),
			'errors'      => $status < 400 ? array() : array(
				array(
					'code'    => 'http-status',
					'message' => "WordPress answered the action with the HTTP status $status",
				),
			),
			'performance' => (object) array( 'wallMs' => $took ),
			'httpStatus'  => $status,
			'redirect'    => $answer['headers']['location'] ?? null,
			'user'        => Users::row( $user ),
			'session'     => $session,
			'result'      => null === $json ? null : plain( $json ),
			'body'        => cut( mb_scrub( $answer['held'], 'UTF-8' ), 65536 ),
			'bodyBytes'   => $answer['bytes'],
		)
	);
}

/**
 * Fires a hook of wp-admin in this process, as the user of the action; without one, as the first administrator.
 *
 * @param Admin_Action_Request $request  Requested action.
 * @param array<string,mixed>  $document Result document so far.
 * @return array<string,mixed>
 */
function admin_hook( Admin_Action_Request $request, array $document ): array {
	list( $user ) = admin_session( $request );
	$acting = new Arguments( array( 'user' => (string) ( $user ?? Users::administrator() )->ID ) );
	$target = array(
		'kind'      => 'admin-hook',
		'name'      => $request->name,
		'args'      => $request->arguments,
		'callbacks' => count( hook_callbacks( $request->name, 1000 ) ),
	);
	// wp-admin reads parameters from these arrays.
	$_GET     = $request->query + ( 'GET' === $request->method ? $request->params : array() );
	$_POST    = 'POST' === $request->method ? $request->params : array();
	$_REQUEST = $_POST + $_GET;
	try {
		$done = act(
			$acting,
			$target,
			static function () use ( $request ): void {
				do_action_ref_array( $request->name, $request->arguments );
			}
		);
	} catch ( Refusal $refusal ) {
		throw new Refusal( $refusal->reason, $refusal->getMessage(), array_merge( $document, admin_hook_members( $refusal->document ) ) );
	}
	return array_merge( $document, admin_hook_members( $done ) );
}

/**
 * Returns the members of the result that describe a fired hook.
 *
 * @param array<string,mixed> $done Result of act().
 * @return array<string,mixed>
 */
function admin_hook_members( array $done ): array {
	return array(
		'executed'    => (object) ( array( 'family' => 'admin-hook' ) + array_intersect_key( $done, array_flip( array( 'target', 'mutation', 'output' ) ) ) ),
		'performance' => (object) array( 'wallMs' => $done['durationMs'] ?? 0 ),
		'user'        => $done['capability']['user'] ?? null,
	);
}

/**
 * Returns the acting user and the session whose cookies are sent. Without user, role and session the request
 * is anonymous.
 *
 * @param Admin_Action_Request $request Requested action.
 * @return array{?\WP_User, ?string}
 */
function admin_session( Admin_Action_Request $request ): array {
	$session = $request->session;
	$login   = $request->user;
	if ( '' === $session ) {
		if ( '' === $login . $request->role ) {
			return array( null, null );
		}
		$session = ADMIN_ACTION_SESSION;
		Sessions::make( $session, Users::ensure( $login, $request->role ), array( home_url() ) );
		$login = '';
	}
	$user = Sessions::become( $session, $login );
	wp_set_current_user( $user->ID );
	return array( $user, $session );
}
