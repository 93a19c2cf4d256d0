<?php
/**
 * Parts of a URL, without the tolerance of PHP for ports.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * PHP reads `https://host:1*`, `host:+443` and `host:0443` as URLs with a port; other programs refuse them or read another port.
 */
final class UrlParts {

	/**
	 * Returns the parts as `wp_parse_url()` does; none if the URL is malformed or its port is not a number from 1 to 65535
	 * without sign, leading zero and other characters.
	 *
	 * @param string $url URL.
	 * @return array<string, int|string>
	 */
	public static function of( string $url ): array {
		$parts     = wp_parse_url( $url );
		$authority = 1 === preg_match( '~^[^/?#]*//([^/?#]*)~', $url, $found ) ? $found[1] : '';
		$port      = 1 === preg_match( '~:([^:\]@]*)$~', $authority, $found ) ? $found[1] : null;
		if ( ! is_array( $parts ) || ( null !== $port && 1 !== preg_match( '/^[1-9][0-9]{0,4}\z/', $port ) ) ) {
			return [];
		}
		return $parts;
	}
}
