<?php
/**
 * Adds the credential to a request of the built-in provider adapter.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Closure;
use Throwable;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Authenticates as the site's bridge policy says: with the header that it describes, or with its callback, which may change
 * only URL and headers. The URL that the callback returns is checked again.
 */
final class BridgeAuthentication {

	private const HEADER_NAME = '/^[A-Za-z0-9!#$%&\'*+.^_`|~-]{1,128}$/D';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param ActiveSecrets $secrets Secret values of the connector, for the current request.
	 */
	public function __construct( private readonly ActiveSecrets $secrets ) {}

	/**
	 * Returns the request with the credential of the connector added.
	 *
	 * @param BridgePolicy                                                              $policy  Bridge policy
	 *   of the site.
	 * @param array{method: string, uri: string, headers: array<string, string>, body: string} $request
	 *   Request without a credential.
	 * @return array{method: string, uri: string, headers: array<string, string>, body: string}
	 * @throws Failure `wp_codebox_browser_provider_bridge_authentication_*`.
	 */
	public function apply( BridgePolicy $policy, array $request ): array {
		if ( ! $policy->authentication instanceof Closure ) {
			$request['headers'] = array_merge( $request['headers'], $this->described( $policy->authentication ) );
			return $request;
		}
		try {
			$answer = ( $policy->authentication )( $request, $this->secrets->values() );
		} catch ( Throwable $thrown ) {
			throw PluginResponse::thrown( $thrown, ErrorCode::BrowserProviderBridgeAuthenticationFailed, __( 'The function of this site that authenticates requests to the provider threw an exception; the PHP error log says where.', 'codebox' ) );
		}
		if ( is_wp_error( $answer ) ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeAuthenticationFailed, __( 'The function of this site that authenticates requests to the provider returned an error instead of the request.', 'codebox' ) );
		}
		$url = is_array( $answer ) && is_string( $answer['uri'] ?? null ) ? BridgeUrl::parse( $answer['uri'] ) : null;
		if ( null === $url || ! is_array( $answer['headers'] ?? null ) ) {
			throw self::no_request();
		}
		$this->learn( $request, $answer['headers'], $url );
		return [
			'uri'     => $policy->allowed( $url )->text(),
			'headers' => $answer['headers'],
		] + $request;
	}

	/**
	 * Builds the headers for an authentication that the policy describes.
	 *
	 * @param array<string, mixed> $how Authentication: `type` is `bearer`, `header` or `none`; `credential`
	 *   is the environment name of the connector's secret; `header` is the header name.
	 * @return array<string, string>
	 */
	private function described( array $how ): array {
		$type = $how['type'] ?? null;
		if ( null === $type ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeAuthenticationStrategyMissing, __( 'The "authentication" in the policy of the provider bridge has no "type"; set it to bearer, header or none.', 'codebox' ) );
		}
		if ( 'none' === $type ) {
			return [];
		}
		$name   = is_string( $how['credential'] ?? null ) ? $how['credential'] : '';
		$value  = $this->secrets->values()[ $name ] ?? null;
		$header = 'bearer' === $type ? 'Authorization' : ( is_string( $how['header'] ?? null ) ? $how['header'] : '' );
		if ( ! in_array( $type, [ 'bearer', 'header' ], true ) || ! self::is_header( $header, $value ) ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeAuthenticationStrategyInvalid, __( 'The authentication of the provider bridge cannot be used: its type is unknown, its header is not a valid header name, or the connector has no usable secret of the name in "credential".', 'codebox' ) );
		}
		return [ $header => 'bearer' === $type ? 'Bearer ' . $value : $value ];
	}

	/**
	 * Registers the values that the site's callback added, so that redaction finds them in the response.
	 *
	 * @param array<string, mixed> $before  Request before the callback.
	 * @param array<mixed>         $headers Headers after the callback.
	 * @param BridgeUrl            $url     URL after the callback.
	 */
	private function learn( array $before, #[\SensitiveParameter] array $headers, #[\SensitiveParameter] BridgeUrl $url ): void {
		foreach ( $headers as $name => $value ) {
			if ( ! self::is_header( $name, $value ) ) {
				throw self::no_request();
			}
			if ( SecretNames::in_header( $name ) && ( $before['headers'][ $name ] ?? null ) !== $value ) {
				foreach ( array_merge( [ $value ], explode( ' ', $value ) ) as $part ) {
					$this->secrets->learn( $part );
				}
			}
		}
		$asked = BridgeUrl::parse( $before['uri'] );
		foreach ( array_diff( $url->query_values(), null === $asked ? [] : $asked->query_values() ) as $value ) {
			$this->secrets->learn( $value );
		}
	}

	/**
	 * Checks for a single valid header: a name by RFC 9110 and one line of printable ASCII.
	 *
	 * @param mixed $name  Header name.
	 * @param mixed $value Header value.
	 */
	public static function is_header( mixed $name, #[\SensitiveParameter] mixed $value ): bool {
		return is_string( $name ) && is_string( $value ) && 1 === preg_match( self::HEADER_NAME, $name ) && 1 !== preg_match( '/[^\x20-\x7e]/', $value );
	}

	/** Returns the failure for a result of the policy's callback that has no valid URI or headers. */
	private static function no_request(): Failure {
		return Failure::because( ErrorCode::BrowserProviderBridgeAuthenticatedRequestInvalid, __( 'The function of this site that authenticates requests to the provider must return "uri" and "headers"; the URI and each header must be one line of plain text.', 'codebox' ) );
	}
}
