<?php
/**
 * Plugin Name: WP Codebox Guest
 * Description: Keeps the WordPress of a sandbox to itself: mail is captured, no cron, HTTP only through the bridge.
 * License: GPL-2.0-or-later
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Socket of the egress bridge (the proxy that applies the run's network policy); it exists when that policy
 * allows network access.
 */
const EGRESS_SOCKET = '/run/codebox/egress.sock';

/**
 * Checks whether a URL points to the guest itself.
 *
 * @param string $url URL to request.
 */
function is_local( string $url ): bool {
	$host = (string) wp_parse_url( $url, PHP_URL_HOST );
	return in_array( $host, array( 'localhost', '127.0.0.1', '::1', '[::1]' ), true );
}

/**
 * Checks whether a URL addresses the egress bridge itself, e.g. the endpoint of the run's model.
 *
 * @param string $url URL to request.
 */
function is_bridge( string $url ): bool {
	$bridge = (string) getenv( 'CODEBOX_EGRESS_URL' );
	return '' !== $bridge && str_starts_with( $url, $bridge . '/' );
}

/**
 * Returns the error that a caller of the HTTP API gets for a request that did not leave the sandbox.
 *
 * WordPress reads the body of any response, and takes an update check without a list for "no update".
 *
 * @param string $message What stopped the request.
 * @param string $url     Requested URL.
 */
function denied( string $message, string $url ): \WP_Error {
	/**
	 * Fires after a request of the HTTP API was denied or did not reach its host.
	 *
	 * @param string $message What stopped the request.
	 * @param string $url     Requested URL.
	 */
	do_action( 'wp_codebox_request_denied', $message, $url );
	return new \WP_Error( 'http_request_not_executed', $message );
}

/**
 * Without an egress bridge, fails HTTP requests to other hosts at once instead of letting them run into their timeout.
 *
 * @param mixed  $response Result of an earlier filter, or false.
 * @param array  $args     Request arguments.
 * @param string $url      URL to request.
 * @return mixed Unchanged result, or an error.
 */
function block_http( $response, $args, $url ) {
	if ( false !== $response || file_exists( EGRESS_SOCKET ) || is_local( (string) $url ) ) {
		return $response;
	}
	$host = (string) wp_parse_url( (string) $url, PHP_URL_HOST );
	$port = wp_parse_url( (string) $url, PHP_URL_PORT );
	$host = null === $port || false === $port ? $host : "$host:$port";
	return denied( "the sandbox has no network, so it denied the request to $host; ask the operator to allow this host (option --allow-host $host) [wp_codebox_egress_denied]", (string) $url );
}

/**
 * Turns a response of the egress bridge itself into an error. The bridge marks these by a header, which it removes from
 * the responses of hosts.
 *
 * @param mixed  $response Response, or an error.
 * @param array  $args     Request arguments.
 * @param string $url      Requested URL.
 * @return mixed Unchanged response, or an error.
 */
function fail_denied( $response, $args, $url ) {
	$status = is_array( $response ) && file_exists( EGRESS_SOCKET ) ? wp_remote_retrieve_header( $response, 'proxy-status' ) : '';
	if ( ! is_string( $status ) || 1 !== preg_match( '/^wp-codebox; error=[a-z_]+; details="((?:[^"\\\\]|\\\\.)*)"$/', $status, $found ) ) {
		return $response;
	}
	return denied( stripslashes( $found[1] ), (string) $url );
}

/**
 * Shows what stopped a request to wordpress.org. WordPress says that something may be wrong with wordpress.org, and has
 * the cause only as data of the error.
 *
 * @param mixed $result Answer of an API of wordpress.org, or an error.
 * @return mixed Answer, or an error with its cause as message.
 */
function explain_api_error( $result ) {
	$cause = is_wp_error( $result ) ? $result->get_error_data() : null;
	if ( ! is_string( $cause ) || ! str_contains( $cause, '[wp_codebox_egress_' ) ) {
		return $result;
	}
	return new \WP_Error( $result->get_error_code(), $cause );
}

/**
 * Disables WordPress's check for safe addresses, which the egress bridge does instead.
 *
 * WordPress would resolve the host name first, which is impossible in a guest. The bridge resolves names and
 * refuses private addresses for every request and redirect. Requests to the guest's own loopback addresses
 * are allowed only for the bridge's address and port.
 *
 * @param array  $args Request arguments.
 * @param string $url  URL to request.
 * @return array Request arguments.
 */
function leave_addresses_to_bridge( $args, $url ) {
	if ( is_bridge( (string) $url ) || file_exists( EGRESS_SOCKET ) && ! is_local( (string) $url ) ) {
		$args['reject_unsafe_urls'] = false;
	}
	return $args;
}

/**
 * Sends HTTP requests for other hosts to the egress bridge: the bridge terminates TLS itself, so it can
 * enforce rules on methods and paths and insert secrets.
 *
 * Reads the URL from the handle, because after a redirect it differs from the requested one.
 *
 * @param \CurlHandle $handle cURL handle.
 */
function route_curl( $handle ): void {
	$url   = (string) curl_getinfo( $handle, CURLINFO_EFFECTIVE_URL );
	$parts = wp_parse_url( $url );
	if ( ! file_exists( EGRESS_SOCKET ) || ! isset( $parts['scheme'], $parts['host'] ) || is_local( $url ) ) {
		return;
	}
	$target = strtolower( $parts['scheme'] ) . '/' . $parts['host'];
	if ( isset( $parts['port'] ) ) {
		$target .= ':' . $parts['port'];
	}
	$target .= $parts['path'] ?? '/';
	if ( isset( $parts['query'] ) ) {
		$target .= '?' . $parts['query'];
	}
	if ( isset( $parts['user'] ) ) {
		curl_setopt( $handle, CURLOPT_USERPWD, rawurldecode( $parts['user'] ) . ':' . rawurldecode( $parts['pass'] ?? '' ) );
	}
	curl_setopt( $handle, CURLOPT_PROXY, '' );
	curl_setopt( $handle, CURLOPT_UNIX_SOCKET_PATH, EGRESS_SOCKET );
	curl_setopt( $handle, CURLOPT_URL, 'http://127.0.0.1/' . $target );
}

/**
 * Sets a default sender that WordPress accepts.
 *
 * WordPress derives the sender from the site's host and rejects `wordpress@localhost` because it has no dot.
 * A sender set by a plugin stays unchanged.
 *
 * @param string $from Sender address.
 * @return string Sender address.
 */
function sender( $from ) {
	return 'wordpress@localhost' === $from ? 'wordpress@example.org' : $from;
}

add_filter( 'pre_http_request', __NAMESPACE__ . '\\block_http', 1, 3 );
add_filter( 'http_response', __NAMESPACE__ . '\\fail_denied', PHP_INT_MAX, 3 );
foreach ( array( 'plugins_api_result', 'themes_api_result', 'translations_api_result' ) as $wp_codebox_result ) {
	add_filter( $wp_codebox_result, __NAMESPACE__ . '\\explain_api_error' );
}
unset( $wp_codebox_result );
add_filter( 'http_request_args', __NAMESPACE__ . '\\leave_addresses_to_bridge', PHP_INT_MAX, 2 );
add_action( 'http_api_curl', __NAMESPACE__ . '\\route_curl', PHP_INT_MAX );

/**
 * Reports a mail as not sent where WordPress has no mailer.
 *
 * Debian's package links PHPMailer to a host directory that no guest sees; wp_mail() would end the request
 * with a fatal error.
 *
 * @param bool|null $sent Result of an earlier filter.
 * @return bool|null
 */
function without_mailer( $sent ) {
	return is_readable( ABSPATH . WPINC . '/PHPMailer/PHPMailer.php' ) ? $sent : false;
}

add_filter( 'pre_wp_mail', __NAMESPACE__ . '\\without_mailer', PHP_INT_MAX );
add_filter( 'wp_mail_from', __NAMESPACE__ . '\\sender', 1 );

// Loaded last, so components find the guest completely set up.
if ( is_readable( rtrim( dirname( ABSPATH ), '/' ) . '/run/codebox/components.json' ) ) {
	require rtrim( dirname( ABSPATH ), '/' ) . '/opt/codebox/guest/load-components.php';
}
