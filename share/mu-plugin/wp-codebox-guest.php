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
	return new \WP_Error( 'http_request_not_executed', 'This sandbox has no network.' );
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
