<?php
/**
 * Built-in provider adapter, the provider bridge: sends plain HTTP requests to a model provider.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Throwable;
use WP_Error;
use WPCodebox\Sentence;
use WpOrg\Requests\Exception as TransportFailure;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Where the site has a policy for the provider, sends a request composed in a sandbox to a URL that the
 * policy allows, and adds the credential. The class knows no specific provider. It follows no redirects,
 * limits the response size and redacts the response.
 */
final class ProviderBridge {

	private const METHODS = [ 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE' ];

	/** Hop-by-hop and framing headers, which the HTTP transport sets itself. */
	private const TRANSPORT = '/^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|accept-encoding|user-agent|forwarded|via|x-forwarded-.*|x-real-ip|proxy-.*|x-http-method.*)$/i';

	private const MOST_BYTES = 1048576;

	/**
	 * Creates the bridge with its dependencies.
	 *
	 * @param ActiveSecrets        $secrets        Secret values of the connector, for the current request.
	 * @param BridgeAuthentication $authentication Adds the credential.
	 */
	public function __construct(
		private readonly ActiveSecrets $secrets,
		private readonly BridgeAuthentication $authentication
	) {}

	/**
	 * Answers a provider request if no other adapter has answered it and the site has a policy for the provider.
	 *
	 * @param mixed                $answer  Response of earlier adapters.
	 * @param array<string, mixed> $request `wp-codebox/browser-provider-adapter-request/v1`.
	 * @param array<string, mixed> $input   Ability input.
	 * @return mixed
	 */
	public function answer( mixed $answer, mixed $request = [], mixed $input = [] ): mixed {
		if ( null !== $answer || ! is_array( $request ) || ! is_array( $input ) ) {
			return $answer;
		}
		try {
			/**
			 * Supplies the policy of the built-in provider adapter, the bridge, for a provider. Without a policy the bridge does
			 * not answer.
			 *
			 * @param array{provider?: string, allowed_base_urls?: list<string>, authentication?: array{type:
			 *   string, credential?: string, header?: string}, authenticate_request?: callable(array{method:
			 *   string, uri: string, headers: array<string, string>, body: string}, array<string, string>):
			 *   (array{uri: string, headers: array<string, string>}|WP_Error), timeout?: int|float} $policy
			 *   Empty policy. `authentication` is declarative, or the callback `authenticate_request`, which
			 *   gets the connector's values by environment name.
			 * @param string               $provider Provider of the connector.
			 * @param array<string, mixed> $request  `wp-codebox/browser-provider-adapter-request/v1`.
			 * @param array<string, mixed> $input    Input of the ability. Do not take a URL from it.
			 */
			$policy = apply_filters( 'wp_codebox_browser_provider_bridge_policy', [], (string) ( $request['provider'] ?? '' ), $request, $input );
			return null === $policy || [] === $policy ? null : $this->bridge( BridgePolicy::read( $policy, (string) ( $request['provider'] ?? '' ) ), $request );
		} catch ( Failure $failure ) {
			return $failure->to_wp_error();
		} catch ( Throwable $thrown ) {
			return PluginResponse::thrown( $thrown, ErrorCode::BrowserProviderBridgePolicyInvalid, __( 'The plugin that sets the policy of the provider bridge threw an exception; the PHP error log says where.', 'codebox' ) )->to_wp_error();
		}
	}

	/**
	 * Sends the request that the sandbox composed, with the credential, and returns response and audit data.
	 *
	 * @param BridgePolicy         $policy  Bridge policy of the site.
	 * @param array<string, mixed> $request `wp-codebox/browser-provider-adapter-request/v1`.
	 * @return array<string, mixed>
	 */
	private function bridge( BridgePolicy $policy, array $request ): array {
		if ( 'http.request' !== $request['operation'] ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeOperationUnsupported, __( 'The built-in bridge can only execute the operation "http.request".', 'codebox' ) );
		}
		$payload = (array) $request['request'];
		$method  = strtoupper( is_string( $payload['method'] ?? null ) ? $payload['method'] : 'POST' );
		$url     = $policy->address( $payload );
		if ( ! in_array( $method, self::METHODS, true ) ) {
			/* translators: %s: list of HTTP methods. */
			throw Failure::because( ErrorCode::BrowserProviderRequestRequired, Sentence::of( __( 'The built-in bridge cannot send this HTTP method; use one of %s.', 'codebox' ), implode( ', ', self::METHODS ) ) );
		}
		[ $headers, $dropped ] = self::headers( $payload['headers'] ?? [] );
		[ $body, $type ]       = self::body( $payload );
		if ( null !== $type && ! isset( array_change_key_case( $headers )['content-type'] ) ) {
			$headers['Content-Type'] = $type;
		}
		$sent     = $this->authentication->apply(
			$policy,
			[
				'method'  => $method,
				'uri'     => $url->text(),
				'headers' => $headers,
				'body'    => $body,
			]
		);
		$response = $this->send( $sent, $policy->timeout );
		return [
			'success'  => $response['status'] >= 200 && $response['status'] < 400,
			'response' => [ 'http' => $response ],
			'audit'    => [
				'schema'           => 'wp-codebox/browser-provider-bridge-audit/v1',
				'provider'         => $request['provider'],
				'operation'        => $request['operation'],
				'uri_host'         => $url->host,
				'dropped_headers'  => $dropped,
				'secrets_redacted' => true,
			],
		];
	}

	/**
	 * Returns the headers that may be sent, and the names of the refused ones.
	 *
	 * @param mixed $given Headers as composed in the sandbox.
	 * @return array{array<string, string>, list<string>}
	 */
	private static function headers( mixed $given ): array {
		$headers = [];
		$dropped = [];
		foreach ( is_array( $given ) ? $given : [] as $name => $value ) {
			$name  = (string) $name;
			$value = is_int( $value ) || is_float( $value ) ? (string) $value : $value;
			if ( ! BridgeAuthentication::is_header( $name, $value ) || count( $headers ) >= 64 || SecretNames::in_header( $name ) || 1 === preg_match( self::TRANSPORT, $name ) ) {
				$dropped[] = sanitize_text_field( substr( $name, 0, 128 ) );
				continue;
			}
			$headers[ $name ] = $value;
		}
		return [ $headers, array_slice( $dropped, 0, 64 ) ];
	}

	/**
	 * Returns body and content type: a string unchanged, other data as JSON.
	 *
	 * @param array<mixed> $payload Request with `body` or `data`.
	 * @return array{string, string|null}
	 */
	private static function body( array $payload ): array {
		$given = $payload['body'] ?? $payload['data'] ?? '';
		$body  = is_string( $given ) ? $given : (string) wp_json_encode( $given, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION );
		if ( strlen( $body ) > self::MOST_BYTES ) {
			/* translators: %d: number of bytes. */
			throw Failure::because( ErrorCode::BrowserProviderRequestRequired, Sentence::of( __( 'The body of the request is larger than %d bytes.', 'codebox' ), self::MOST_BYTES ) );
		}
		return [ $body, '' === $body || is_string( $given ) && ! in_array( $given[0], [ '{', '[' ], true ) ? null : 'application/json' ];
	}

	/**
	 * Sends an HTTP request to the provider and reads the response.
	 *
	 * @param array{method: string, uri: string, headers: array<string, string>, body: string} $request
	 *   Request with its credential.
	 * @param float $seconds Timeout in seconds.
	 * @return array{status: int, headers: array<string, string>, body: string}
	 */
	private function send( #[\SensitiveParameter] array $request, float $seconds ): array {
		$most = self::MOST_BYTES;
		// The policy lists an IP address explicitly, so a private one is permitted. A host name must not resolve
		// to a private address.
		$numeric = BridgeUrl::parse( $request['uri'] )?->is_numeric() ?? false;
		// The HTTP transport decompresses responses without a size limit, so the request asks for no
		// compression and a compressed response is refused.
		$plain = static function ( mixed $bytes ): void {
			if ( 1 === preg_match( '/^content-encoding:[ \t]*(?!identity)\S/mi', (string) strstr( (string) $bytes, "\r\n\r\n", true ) ) ) {
				throw new TransportFailure( __( 'The response is compressed; the provider must send it uncompressed.', 'codebox' ), 'wp-codebox.packed' );
			}
		};
		add_action( 'requests-requests.before_parse', $plain );
		try {
			$answer = wp_remote_request(
				$request['uri'],
				[
					'method'              => $request['method'],
					'headers'             => $request['headers'] + [ 'Accept-Encoding' => 'identity' ],
					'body'                => '' === $request['body'] ? null : $request['body'],
					'timeout'             => $seconds,
					'redirection'         => 0,
					'reject_unsafe_urls'  => ! $numeric,
					'limit_response_size' => $most + 1,
					'decompress'          => false,
					'sslverify'           => true,
					'cookies'             => [],
					'user-agent'          => 'WP-Codebox/' . \WPCodebox\VERSION,
				]
			);
		} finally {
			remove_action( 'requests-requests.before_parse', $plain );
		}
		if ( $answer instanceof WP_Error ) {
			throw Failure::because( ErrorCode::BrowserProviderBridgeException, __( 'The provider could not be reached.', 'codebox' ), [ Redaction::line( $answer->get_error_message(), array_values( $this->secrets->values() ) ) ] );
		}
		$body = wp_remote_retrieve_body( $answer );
		if ( strlen( $body ) > $most ) {
			/* translators: %d: number of bytes. */
			throw Failure::because( ErrorCode::BrowserProviderBridgeException, Sentence::of( __( 'The answer of the provider is larger than %d bytes.', 'codebox' ), $most ) );
		}
		$headers = [];
		foreach ( wp_remote_retrieve_headers( $answer ) as $name => $value ) {
			$value            = implode( ', ', array_map( 'strval', (array) $value ) );
			$headers[ $name ] = SecretNames::in_header( (string) $name ) ? Redaction::REPLACED : wp_check_invalid_utf8( $value, true );
		}
		return [
			'status'  => (int) wp_remote_retrieve_response_code( $answer ),
			'headers' => $headers,
			'body'    => self::without_secrets( $body ),
		];
	}

	/**
	 * Redacts JSON members that are secrets by their name. Secret values are redacted later, in the whole
	 * response.
	 *
	 * @param string $body Response body.
	 */
	private static function without_secrets( #[\SensitiveParameter] string $body ): string {
		$data  = json_decode( $body, false, 64 );
		$clean = null === $data ? null : wp_json_encode( Redaction::named( $data ), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION, 65 );
		$same  = null === $data ? null : wp_json_encode( $data, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION, 65 );
		return $clean === $same || ! is_string( $clean ) ? $body : $clean;
	}
}
