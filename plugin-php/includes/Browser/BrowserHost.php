<?php
/**
 * Host that browser sandboxes are loaded from.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\UrlParts;

defined( 'ABSPATH' ) || exit;

/**
 * Without the constant `WP_CODEBOX_BROWSER_HOST` the sandbox is served by the site itself and its documents have an opaque origin.
 * With it, the sandbox is loaded from that host and can use REST and AJAX. A host that differs from the site only by its
 * port is refused, because cookies ignore ports. Documents of a sandbox never have the site's own origin.
 */
final class BrowserHost {

	/** Documents of the sandbox have an opaque origin. */
	public const OPAQUE = 'opaque';
	/** Documents of the sandbox have the origin of a host of their own. */
	public const SEPARATE = 'separate-host';

	/** Constant with the origin of the separate host. */
	public const CONSTANT = 'WP_CODEBOX_BROWSER_HOST';
	/** Constant with the origin of a Playground host that this site does not serve itself. */
	public const OUTSIDE = 'WP_CODEBOX_PLAYGROUND_HOST';

	/**
	 * Creates the host from its settings.
	 *
	 * @param string $configured    Value of `WP_CODEBOX_BROWSER_HOST`, or ''.
	 * @param string $outside       Value of `WP_CODEBOX_PLAYGROUND_HOST`, or ''.
	 * @param string $cookie_domain Value of `COOKIE_DOMAIN`, or ''.
	 */
	public function __construct(
		private readonly string $configured,
		private readonly string $outside = '',
		private readonly string $cookie_domain = ''
	) {}

	/** Creates the host from the constants of this site. */
	public static function of_site(): self {
		$value = static fn( string $name ): string => defined( $name ) && is_string( constant( $name ) ) ? constant( $name ) : '';
		return new self( $value( self::CONSTANT ), $value( self::OUTSIDE ), $value( 'COOKIE_DOMAIN' ) );
	}

	/**
	 * Returns the isolation of the sandbox's documents.
	 *
	 * @throws Failure `wp_codebox_browser_host_invalid`.
	 */
	public function isolation(): string {
		return '' === $this->origin() && '' === $this->outside() ? self::OPAQUE : self::SEPARATE;
	}

	/**
	 * Returns the origin of the separate host, without trailing slash; '' when there is none.
	 *
	 * @throws Failure `wp_codebox_browser_host_invalid`.
	 */
	public function origin(): string {
		return '' === $this->configured ? '' : $this->checked( $this->configured, self::CONSTANT );
	}

	/**
	 * Returns the origin of the outside Playground host, without trailing slash; '' when there is none.
	 *
	 * @throws Failure `wp_codebox_browser_host_invalid`.
	 */
	public function outside(): string {
		return '' === $this->outside ? '' : $this->checked( $this->outside, self::OUTSIDE );
	}

	/**
	 * Checks whether a host is the machine of the browser itself, where no encryption is needed.
	 *
	 * @param string $host Host name or address, without port.
	 */
	public static function is_loopback( string $host ): bool {
		return 1 === preg_match( '/^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/Di', $host );
	}

	/**
	 * Returns the host of a URL in lower case, without port and trailing dot; '' when it has none.
	 *
	 * @param string $url URL.
	 */
	public static function host_of( string $url ): string {
		return rtrim( strtolower( (string) wp_parse_url( $url, PHP_URL_HOST ) ), '.' );
	}

	/**
	 * Returns scheme, host and port of a URL.
	 *
	 * @param string $url URL.
	 */
	public static function origin_of( string $url ): string {
		$parts  = (array) wp_parse_url( $url );
		$scheme = strtolower( (string) ( $parts['scheme'] ?? '' ) );
		$port   = (int) ( $parts['port'] ?? 0 );
		return $scheme . '://' . self::host_of( $url ) . ( 0 === $port || ( 'https' === $scheme ? 443 : 80 ) === $port ? '' : ":$port" );
	}

	/**
	 * Returns the origin that a constant names.
	 *
	 * @param string $value    Value of the constant.
	 * @param string $constant Its name.
	 * @throws Failure `wp_codebox_browser_host_invalid`.
	 */
	private function checked( string $value, string $constant ): string {
		$parts  = UrlParts::of( $value );
		$host   = [] === $parts ? '' : self::host_of( $value );
		$scheme = strtolower( (string) ( $parts['scheme'] ?? '' ) );
		if ( '' === $host || [] !== array_diff_key( $parts, array_flip( [ 'scheme', 'host', 'port', 'path' ] ) ) || ! in_array( $parts['path'] ?? '/', [ '/' ], true ) ) {
			/* translators: %s: name of a constant. */
			throw self::refused( Sentence::of( __( 'The constant %s must be an address without path, such as https://sandbox.example.org.', 'codebox' ), $constant ) );
		}
		if ( 'https' !== $scheme && ! ( 'http' === $scheme && self::is_loopback( $host ) ) ) {
			/* translators: %s: name of a constant. */
			throw self::refused( Sentence::of( __( 'The host in the constant %s must be reached with https; service workers do not work otherwise.', 'codebox' ), $constant ) );
		}
		if ( in_array( $host, self::own_hosts(), true ) ) {
			/* translators: 1: name of a constant, 2: host name. */
			throw self::refused( Sentence::of( __( 'The constant %1$s names %2$s, which is a host of this site itself. Another port is not enough: cookies ignore ports, so the sandbox could read those of this site.', 'codebox' ), $constant, $host ) );
		}
		$domain = ltrim( strtolower( rtrim( $this->cookie_domain, '.' ) ), '.' );
		if ( '' !== $domain && ( $host === $domain || str_ends_with( $host, '.' . $domain ) ) ) {
			/* translators: 1: name of a constant, 2: host name, 3: domain. */
			throw self::refused( Sentence::of( __( 'The constant %1$s names %2$s, and this site sends its cookies to every host below %3$s (COOKIE_DOMAIN), so the sandbox would get them.', 'codebox' ), $constant, $host, $domain ) );
		}
		return self::origin_of( $value );
	}

	/**
	 * Returns the hosts of this site and of its network.
	 *
	 * @return list<string>
	 */
	private static function own_hosts(): array {
		$hosts = array_map( [ self::class, 'host_of' ], [ site_url(), home_url(), admin_url(), network_site_url(), content_url() ] );
		if ( is_multisite() ) {
			foreach ( get_sites( [ 'number' => 0, 'network' => 0 ] ) as $site ) {
				$hosts[] = self::host_of( 'https://' . $site->domain );
			}
		}
		return array_values( array_unique( array_filter( $hosts ) ) );
	}

	/**
	 * Builds the failure of a host that cannot be used.
	 *
	 * @param string      $sentence What is wrong.
	 * @param string|null $hint     What to do; null: what to do about the constant with the host.
	 */
	public static function refused( string $sentence, ?string $hint = null ): Failure {
		return Failure::because(
			ErrorCode::BrowserHostInvalid,
			$sentence,
			[ $hint ?? __( 'Use a host name that only the sandbox has, best below another domain, and let it serve the plugin directory of this site. Or remove the constant; the sandbox then works without REST, AJAX and the block editor.', 'codebox' ) ]
		);
	}
}
