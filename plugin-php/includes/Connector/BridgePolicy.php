<?php
/**
 * The site's policy for the built-in provider adapter.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Closure;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Holds base URLs, authentication and timeout. All values come from the site, none from a caller.
 */
final class BridgePolicy {

	/** Maximum timeout of a request to the provider, in seconds. */
	public const MOST_SECONDS = 60;

	/**
	 * Creates a validated policy.
	 *
	 * @param list<BridgeUrl>              $bases          Allowed base URLs; a relative path is resolved
	 *   against the first.
	 * @param Closure|array<string, mixed> $authentication Authentication settings.
	 * @param float                        $timeout        Timeout in seconds.
	 */
	private function __construct(
		private readonly array $bases,
		public readonly Closure|array $authentication,
		public readonly float $timeout
	) {}

	/**
	 * Parses the value that the site's filter returned.
	 *
	 * @param mixed  $policy   Non-empty value of the filter.
	 * @param string $provider Provider of the request.
	 * @throws Failure `wp_codebox_browser_provider_bridge_policy_*`.
	 */
	public static function read( #[\SensitiveParameter] mixed $policy, string $provider ): self {
		if ( ! is_array( $policy ) ) {
			throw self::invalid( __( 'it is not an array', 'codebox' ) );
		}
		if ( isset( $policy['provider'] ) && $policy['provider'] !== $provider ) {
			throw self::invalid( __( 'its "provider" is not the provider of the connector', 'codebox' ) );
		}
		$bases = is_array( $policy['allowed_base_urls'] ?? null ) ? array_values( $policy['allowed_base_urls'] ) : [];
		if ( [] === $bases ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeBaseUrlMissing, __( 'The policy of the provider bridge allows no base address; the plugin that sets the policy must list the addresses in "allowed_base_urls".', 'codebox' ) );
		}
		$bases = array_map( static fn( mixed $base ): ?BridgeUrl => is_string( $base ) ? BridgeUrl::parse( $base ) : null, $bases );
		foreach ( $bases as $base ) {
			if ( null === $base || ! $base->is_protected() ) {
				throw self::invalid( __( 'each of "allowed_base_urls" must be an https address without user name and dot segments, or an address of this machine', 'codebox' ) );
			}
		}
		$timeout = $policy['timeout'] ?? self::MOST_SECONDS;
		if ( ! is_int( $timeout ) && ! is_float( $timeout ) || $timeout <= 0 ) {
			throw self::invalid( __( '"timeout" must be a number of seconds', 'codebox' ) );
		}
		return new self( $bases, self::authentication( $policy ), min( (float) $timeout, (float) self::MOST_SECONDS ) );
	}

	/**
	 * Returns the URL that a request asks for, if the policy allows it.
	 *
	 * @param array<mixed> $request Request with `uri` or `url`, else `path`.
	 * @throws Failure `wp_codebox_browser_provider_bridge_uri_invalid`, `_path_invalid`, `_uri_forbidden`.
	 */
	public function address( array $request ): BridgeUrl {
		$whole = $request['uri'] ?? $request['url'] ?? null;
		if ( null !== $whole ) {
			$url = is_string( $whole ) ? BridgeUrl::parse( $whole ) : null;
			return $this->allowed( $url ?? throw Failure::because( ErrorCode::BrowserProviderBridgeUriInvalid, __( 'The address of the request must be an absolute http or https address of printable ASCII characters, at most 4096 bytes long and without a user name.', 'codebox' ) ) );
		}
		$path = $request['path'] ?? null;
		$url  = is_string( $path ) ? $this->bases[0]->join( $path ) : null;
		return $this->allowed( $url ?? throw Failure::because( ErrorCode::BrowserProviderBridgePathInvalid, __( 'The request needs "uri", or "path": a path below the base address of the provider, of printable ASCII characters and without encoded slashes and dots.', 'codebox' ) ) );
	}

	/**
	 * Returns the URL if it is below an allowed base URL; fails otherwise.
	 *
	 * @param BridgeUrl $url Requested URL.
	 * @throws Failure `wp_codebox_browser_provider_bridge_uri_forbidden`.
	 */
	public function allowed( BridgeUrl $url ): BridgeUrl {
		foreach ( $this->bases as $base ) {
			if ( $url->is_below( $base ) ) {
				return $url;
			}
		}
		throw Failure::because( ErrorCode::BrowserProviderBridgeUriForbidden, __( 'The address of the request is not below a base address that this site allows in the "allowed_base_urls" of its provider bridge policy.', 'codebox' ) );
	}

	/**
	 * Returns how requests are authenticated: a callback, or a description with `type`, `credential` and `header`.
	 *
	 * @param array<mixed> $policy Value of the filter.
	 * @return Closure|array<string, mixed>
	 */
	private static function authentication( #[\SensitiveParameter] array $policy ): Closure|array {
		$how = $policy['authenticate_request'] ?? $policy['authentication'] ?? null;
		if ( null === $how ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeAuthenticationMissing, __( 'The policy of the provider bridge must have the key "authentication" or "authenticate_request".', 'codebox' ) );
		}
		if ( is_array( $how ) && ! is_callable( $how ) ) {
			return $how;
		}
		if ( ! is_callable( $how ) ) {
			throw self::invalid( __( 'its "authentication" or "authenticate_request" is neither an array nor callable', 'codebox' ) );
		}
		return Closure::fromCallable( $how );
	}

	/**
	 * Returns the failure for an invalid policy.
	 *
	 * @param string $why Reason.
	 */
	private static function invalid( string $why ): Failure {
		/* translators: %s: what is wrong with it. */
		return Failure::because( ErrorCode::BrowserProviderBridgePolicyInvalid, Sentence::of( __( 'The policy of the provider bridge cannot be used: %s.', 'codebox' ), $why ) );
	}
}
