<?php
/**
 * Guest program of the tool `wordpress.http-request`: requests a page of the guest's own WordPress without a
 * network.
 *
 * Standard input is JSON, `{method, path, headers, body, user_id}`. Paths below /wp-json/ are dispatched to
 * the REST API; every other path is rendered as on the front end. The last line of standard output is JSON,
 * `{ok: true, status, headers, body}` or `{ok: false, message}`. The program does not serve /wp-admin/,
 * wp-login.php or static files.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/** Size limit of the response body in the reply, in bytes. */
const BODY_BYTES = 262144;

/**
 * Prints the reply.
 *
 * @param array<string,mixed> $answer Reply to print.
 */
function answer( array $answer ): void {
	if ( isset( $answer['body'] ) && strlen( $answer['body'] ) > BODY_BYTES ) {
		$answer['body'] = mb_strcut( $answer['body'], 0, BODY_BYTES ) . "\n(cut at " . BODY_BYTES . ' bytes)';
	}
	echo "\n", json_encode( $answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR ), "\n";
}

/**
 * Returns the request from standard input. A function keeps it out of the global scope, which WordPress uses.
 *
 * @return array{method:string,target:string,route:string,query:string,headers:array<string,string>,body:string,user:int,rest:bool}
 */
function asked(): array {
	static $asked = null;
	if ( null === $asked ) {
		$given  = (array) json_decode( (string) stream_get_contents( STDIN ), true );
		$target = (string) ( $given['path'] ?? '/' );
		$route  = (string) parse_url( 'http://localhost' . $target, PHP_URL_PATH );
		$query  = (string) parse_url( 'http://localhost' . $target, PHP_URL_QUERY );
		parse_str( $query, $arguments );
		$asked = array(
			'method'  => (string) ( $given['method'] ?? 'GET' ),
			'target'  => $target,
			'route'   => $route,
			'query'   => $query,
			'headers' => array_map( 'strval', array_filter( (array) ( $given['headers'] ?? array() ), 'is_scalar' ) ),
			'body'    => (string) ( $given['body'] ?? '' ),
			'user'    => (int) ( $given['user_id'] ?? 0 ),
			'rest'    => str_starts_with( $route, '/wp-json/' ) || '/wp-json' === $route || isset( $arguments['rest_route'] ),
		);
	}
	return $asked;
}

/**
 * Sets the server variables as a web server would for the request.
 */
function pretend(): void {
	$_SERVER['HTTP_HOST']       = 'localhost';
	$_SERVER['SERVER_NAME']     = 'localhost';
	$_SERVER['SERVER_PORT']     = '80';
	$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
	$_SERVER['REMOTE_ADDR']     = '127.0.0.1';
	$_SERVER['REQUEST_METHOD']  = asked()['method'];
	$_SERVER['REQUEST_URI']     = asked()['target'];
	$_SERVER['QUERY_STRING']    = asked()['query'];
	$_SERVER['SCRIPT_NAME']     = '/index.php';
	$_SERVER['PHP_SELF']        = '/index.php';
	parse_str( asked()['query'], $_GET );
	foreach ( asked()['headers'] as $name => $value ) {
		$key = strtoupper( str_replace( '-', '_', (string) $name ) );
		$_SERVER[ in_array( $key, array( 'CONTENT_TYPE', 'CONTENT_LENGTH' ), true ) ? $key : 'HTTP_' . $key ] = $value;
	}
	if ( str_starts_with( strtolower( (string) ( $_SERVER['CONTENT_TYPE'] ?? '' ) ), 'application/x-www-form-urlencoded' ) ) {
		parse_str( asked()['body'], $_POST );
	}
	$_REQUEST = array_merge( $_GET, $_POST );
}

/**
 * Sends the request to the REST API and returns the response.
 *
 * @return array<string,mixed> Reply.
 */
function dispatch(): array {
	$route = isset( $_GET['rest_route'] )
		? (string) $_GET['rest_route']
		: '/' . ltrim( substr( rawurldecode( asked()['route'] ), strlen( '/wp-json' ) ), '/' );
	unset( $_GET['rest_route'] );
	$request = new \WP_REST_Request( asked()['method'], $route );
	$request->set_query_params( wp_unslash( $_GET ) );
	$request->set_body_params( wp_unslash( $_POST ) );
	$request->set_headers( asked()['headers'] );
	$request->set_body( asked()['body'] );
	ob_start();
	$response = rest_get_server()->dispatch( $request );
	ob_end_clean();
	$data = rest_get_server()->response_to_data( $response, isset( $_GET['_embed'] ) );
	return array(
		'ok'      => true,
		'status'  => $response->get_status(),
		'headers' => array_map( 'strval', $response->get_headers() ) + array( 'Content-Type' => 'application/json' ),
		'body'    => (string) json_encode( $data, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE ),
	);
}

/**
 * Captures the page that WordPress renders from here on, and prints it as the reply at shutdown, because a
 * page may end with `exit`. The PHP CLI does not store headers, so they are captured in WordPress's filters.
 */
function catch_page(): void {
	$sent = array(
		'status'  => 200,
		'headers' => array(),
	);
	add_filter(
		'status_header',
		static function ( $header, $code ) use ( &$sent ) {
			$sent['status'] = (int) $code;
			return $header;
		},
		PHP_INT_MAX,
		2
	);
	add_filter(
		'wp_headers',
		static function ( $headers ) use ( &$sent ) {
			$sent['headers'] = array_map( 'strval', (array) $headers ) + $sent['headers'];
			return $headers;
		},
		PHP_INT_MAX
	);
	add_filter(
		'wp_redirect',
		static function ( $location, $status ) use ( &$sent ) {
			$sent['status']              = (int) $status;
			$sent['headers']['Location'] = (string) $location;
			return $location;
		},
		PHP_INT_MAX,
		2
	);
	// WordPress flushes every buffer in its own shutdown function, which runs first.
	$page = '';
	ob_start(
		static function ( string $piece ) use ( &$page ): string {
			$page .= $piece;
			return '';
		}
	);
	register_shutdown_function(
		static function () use ( &$sent, &$page ): void {
			for ( $level = ob_get_level(); $level > 0; --$level ) {
				@ob_end_flush();
			}
			$error = error_get_last();
			if ( null !== $error && 0 !== ( $error['type'] & ( E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR ) ) ) {
				$sent['status'] = 500;
				$page          .= "\n" . $error['message'] . ' in ' . $error['file'] . ':' . $error['line'];
			}
			answer( array( 'ok' => true ) + $sent + array( 'body' => $page ) );
		}
	);
}

if ( 1 === preg_match( '~^/(?:wp-admin(?:/|$)|wp-content/|wp-includes/|(?!index\.php)[^/]+\.php(?:/|$))~', asked()['route'] ) ) {
	answer(
		array(
			'ok'      => false,
			'message' => asked()['route'] . ' cannot be requested in this way; request a REST route (/wp-json/…) or a front-end page',
		)
	);
	exit;
}

pretend();
if ( ! asked()['rest'] ) {
	define( 'WP_USE_THEMES', true );
}

// Output that a plugin prints while loading must not become part of the reply.
ob_start();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
ob_end_clean();

wp_set_current_user( asked()['user'] );

if ( asked()['rest'] ) {
	answer( dispatch() );
	exit;
}

catch_page();
wp();
require ABSPATH . WPINC . '/template-loader.php';
