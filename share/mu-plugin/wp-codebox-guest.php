<?php
/**
 * Plugin Name: WP Codebox Guest
 * Description: Keeps the WordPress of a sandbox to itself: no mail, no cron, HTTP only through the bridge.
 * License: GPL-2.0-or-later
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * The one way out, when the run's policy gives one.
 */
const EGRESS_SOCKET = '/run/codebox/egress.sock';

/**
 * Whether a URL leads to the guest itself.
 *
 * @param string $url URL.
 */
function is_local( string $url ): bool {
	$host = (string) wp_parse_url( $url, PHP_URL_HOST );
	return in_array( $host, array( 'localhost', '127.0.0.1', '::1', '[::1]' ), true );
}

/**
 * Answers HTTP requests to other hosts at once instead of letting them run into their timeout.
 *
 * @param mixed  $response Answer of an earlier filter, or false.
 * @param array  $args     Request arguments.
 * @param string $url      URL.
 * @return mixed The answer so far, or an error.
 */
function block_http( $response, $args, $url ) {
	if ( false !== $response || file_exists( EGRESS_SOCKET ) || is_local( (string) $url ) ) {
		return $response;
	}
	return new \WP_Error( 'http_request_not_executed', 'This sandbox has no network.' );
}

/**
 * Sends HTTP requests to other hosts through the bridge's socket.
 *
 * @param \CurlHandle $handle cURL handle.
 * @param array       $args   Request arguments.
 * @param string      $url    URL.
 */
function route_curl( $handle, $args, $url ): void {
	if ( file_exists( EGRESS_SOCKET ) && ! is_local( (string) $url ) ) {
		curl_setopt( $handle, CURLOPT_UNIX_SOCKET_PATH, EGRESS_SOCKET );
	}
}

add_filter( 'pre_http_request', __NAMESPACE__ . '\\block_http', 1, 3 );
add_action( 'http_api_curl', __NAMESPACE__ . '\\route_curl', 1, 3 );

// `false` tells the caller that the mail was not sent, and it is not.
add_filter( 'pre_wp_mail', '__return_false', PHP_INT_MAX );
