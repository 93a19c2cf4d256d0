<?php
/**
 * URL of a request that the built-in provider adapter sends.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * Holds scheme, host, port, path and query in normalized form. The URL that is sent is rebuilt from the same
 * parts that were compared with the allowed base URLs. URLs that two parsers could read differently are
 * rejected.
 */
final class BridgeUrl {

	/**
	 * Creates a URL from its parts.
	 *
	 * @param string $scheme `http` or `https`.
	 * @param string $host   Host, lower case.
	 * @param int    $port   Port number.
	 * @param string $path   Path without dot segments, beginning with a slash.
	 * @param string $query  Query, or ''.
	 */
	private function __construct(
		private readonly string $scheme,
		public readonly string $host,
		private readonly int $port,
		private readonly string $path,
		private readonly string $query
	) {}

	/**
	 * Parses a URL; returns null when it is invalid.
	 *
	 * @param string $text Absolute URL.
	 */
	public static function parse( string $text ): ?self {
		if ( 1 !== preg_match( '~^(https?)://([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?$~iD', $text, $parts ) || ! self::printable( $text ) ) {
			return null;
		}
		$scheme = strtolower( $parts[1] );
		if ( 1 !== preg_match( '/^(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)(?::(\d{1,5}))?$/D', strtolower( $parts[2] ), $authority ) ) {
			return null;
		}
		$port = (int) ( $authority[2] ?? ( 'https' === $scheme ? 443 : 80 ) );
		$path = self::normal( $parts[3] );
		return $port < 1 || $port > 65535 || null === $path ? null : new self( $scheme, $authority[1], $port, $path, $parts[4] ?? '' );
	}

	/**
	 * Resolves a relative path below this URL; returns null when the path is invalid.
	 *
	 * @param string $path Relative path, optionally with a query.
	 */
	public function join( string $path ): ?self {
		$foreign = str_starts_with( $path, '//' ) || 1 === preg_match( '~^[a-z][a-z0-9+.-]*:~i', $path );
		if ( $foreign || ! self::printable( $path ) || 1 !== preg_match( '~^/?([^?#]*)(?:\?([^#]*))?(?:#.*)?$~D', $path, $parts ) ) {
			return null;
		}
		$normal = self::normal( rtrim( $this->path, '/' ) . '/' . $parts[1] );
		return null === $normal ? null : new self( $this->scheme, $this->host, $this->port, $normal, $parts[2] ?? '' );
	}

	/**
	 * Checks whether this URL is the base URL or below it.
	 *
	 * @param self $base Base URL.
	 */
	public function is_below( self $base ): bool {
		$prefix = rtrim( $base->path, '/' );
		return [ $base->scheme, $base->host, $base->port ] === [ $this->scheme, $this->host, $this->port ]
			&& ( $this->path === $prefix || str_starts_with( $this->path, $prefix . '/' ) );
	}

	/** Checks whether requests are encrypted (https) or stay on this machine. */
	public function is_protected(): bool {
		return 'https' === $this->scheme || $this->is_loopback();
	}

	/** Checks whether the host is the loopback address. */
	public function is_loopback(): bool {
		return 'localhost' === $this->host || '[::1]' === $this->host || 1 === preg_match( '/^127(?:\.\d{1,3}){3}$/D', $this->host );
	}

	/** Checks whether the host is an IP address or `localhost`, which need no DNS lookup. */
	public function is_numeric(): bool {
		return $this->is_loopback() || str_starts_with( $this->host, '[' ) || false !== filter_var( $this->host, FILTER_VALIDATE_IP );
	}

	/** Returns the URL as a string. */
	public function text(): string {
		$port = ( 'https' === $this->scheme ? 443 : 80 ) === $this->port ? '' : ':' . $this->port;
		return $this->scheme . '://' . $this->host . $port . $this->path . ( '' === $this->query ? '' : '?' . $this->query );
	}

	/**
	 * Returns the decoded values of the query parameters, without their names.
	 *
	 * @return list<string>
	 */
	public function query_values(): array {
		return array_map( static fn( string $pair ): string => rawurldecode( (string) ( explode( '=', $pair, 2 )[1] ?? '' ) ), explode( '&', $this->query ) );
	}

	/**
	 * Checks that a URL is printable ASCII without backslashes and of limited length.
	 *
	 * @param string $text Text to check.
	 */
	private static function printable( string $text ): bool {
		return strlen( $text ) <= 4096 && 1 === preg_match( '/^[\x21-\x7e]+$/D', $text ) && ! str_contains( $text, '\\' );
	}

	/**
	 * Removes dot segments and empty segments from a path. Returns null for a path that leaves its root or
	 * contains an encoded slash, dot or percent sign.
	 *
	 * @param string $path Path, or ''.
	 */
	private static function normal( string $path ): ?string {
		if ( 1 === preg_match( '/%(?:2e|2f|5c|25|00|[0-9a-f]?(?![0-9a-f]))/i', $path ) ) {
			return null;
		}
		$kept = [];
		foreach ( explode( '/', $path ) as $segment ) {
			if ( '..' === $segment && null === array_pop( $kept ) ) {
				return null;
			}
			if ( ! in_array( $segment, [ '', '.', '..' ], true ) ) {
				$kept[] = $segment;
			}
		}
		return '/' . implode( '/', $kept ) . ( [] !== $kept && str_ends_with( $path, '/' ) ? '/' : '' );
	}
}
