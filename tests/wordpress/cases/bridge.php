<?php
/**
 * The bridge with which the plugin itself sends connector requests to providers: policy, allowed addresses, requests, responses.
 */

declare(strict_types=1);

use WPCodebox\Connector\BridgePolicy;
use WPCodebox\Connector\BridgeUrl;
use WPCodebox\Failure;
use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Http;

return static function ( Harness $t ): void {
	require_once dirname( __DIR__ ) . '/http.php';
	$http = new Http( $t );
	$key  = 'bridge-key-of-the-test-0123';
	$read = static fn( array $more = [] ): BridgePolicy => BridgePolicy::read(
		$more + [
			'allowed_base_urls' => [ 'https://api.example.org/v1', 'https://other.example.org:8443/' ],
			'authentication'    => [ 'type' => 'none' ],
		],
		'test-provider'
	);
	/** Calls the body; returns the error code of its failure, or its result. */
	$code = static function ( callable $body ): mixed {
		try {
			return $body();
		} catch ( Failure $failure ) {
			return str_replace( 'wp_codebox_browser_provider_bridge_', '', $failure->error_code );
		}
	};
	/** Sends one connector request under this policy, from the ability through the filter to the bridge. */
	$send = static function ( mixed $policy, array $request, array $more = [] ) use ( $t, $key ): mixed {
		$t->as( 'administrator' );
		$resolvers = static fn(): array => [
			'test-ai' => [
				'provider'      => 'test-provider',
				'secret_env'    => [ 'TEST_AI_KEY' ],
				'secret_values' => [ 'TEST_AI_KEY' => $key ],
			],
		];
		add_filter( 'wp_codebox_connector_credential_resolvers', $resolvers );
		add_filter( 'wp_codebox_browser_provider_bridge_policy', $given = static fn(): mixed => $policy instanceof Throwable ? throw $policy : $policy );
		$log = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
		try {
			return $t->ability(
				'execute-browser-provider-request',
				$more + [
					'operation' => 'http.request',
					'inherit'   => [ 'connectors' => [ 'test-ai' ] ],
					'request'   => $request,
				]
			);
		} finally {
			ini_set( 'error_log', (string) $log );
			remove_filter( 'wp_codebox_connector_credential_resolvers', $resolvers );
			remove_filter( 'wp_codebox_browser_provider_bridge_policy', $given );
		}
	};
	$with = static fn( string $base, array $more = [] ): array => $more + [
		'allowed_base_urls' => [ $base . '/v1' ],
		'authentication'    => [
			'type'       => 'bearer',
			'credential' => 'TEST_AI_KEY',
		],
	];
	/** Returns the HTTP request that the provider received; the provider returns it as its response. */
	$sent = static function ( mixed $answer ) use ( $t ): array {
		$t->same( [ true, 200 ], [ $t->ok( $answer )['success'], $answer['response']['http']['status'] ], (string) json_encode( $answer ) );
		return json_decode( $answer['response']['http']['body'], true );
	};

	$t->test(
		'the bridge accepts URLs below a base URL in every spelling and refuses all other URLs',
		static function () use ( $t, $read, $code ): void {
			foreach ( [
				'https://api.example.org/v1'                    => 'https://api.example.org/v1',
				'https://API.Example.org:443/v1/chat?x=1#frag'  => 'https://api.example.org/v1/chat?x=1',
				'https://api.example.org/v1/./a/../chat/'       => 'https://api.example.org/v1/chat/',
				'https://api.example.org//v1//chat'             => 'https://api.example.org/v1/chat',
				'https://api.example.org/v1/a%20b'              => 'https://api.example.org/v1/a%20b',
				'https://other.example.org:8443/any/thing'      => 'https://other.example.org:8443/any/thing',
			] as $asked => $expected ) {
				$t->same( $expected, $code( static fn(): string => $read()->address( [ 'uri' => $asked ] )->text() ), $asked );
				$t->same( $expected, $code( static fn(): string => $read()->address( [ 'url' => $asked ] )->text() ), $asked );
			}
			foreach ( [ 'http://api.example.org/v1', 'https://api.example.org/', 'https://api.example.org/v1evil', 'https://api.example.org/v1/../admin', 'https://api.example.org/v1/./../../v1x', 'https://api.example.org:444/v1', 'https://evil.example.org/v1', 'https://api.example.org.evil/v1', 'https://evil.example.org/https://api.example.org/v1', 'https://evil.example.org#@api.example.org/v1', 'https://evil.example.org?@api.example.org/v1', 'https://169.254.169.254/v1', 'http://127.0.0.1/v1', 'https://other.example.org/any' ] as $asked ) {
				$expected = str_contains( $asked, '../..' ) ? [ 'uri_forbidden', 'uri_invalid' ] : [ 'uri_forbidden' ];
				$t->true( in_array( $code( static fn(): string => $read()->address( [ 'uri' => $asked ] )->text() ), $expected, true ), $asked );
			}
			foreach ( [ '', 'x', '/v1/chat', '//api.example.org/v1', 'ftp://api.example.org/v1', 'https://', 'https:///v1', 'https://user@api.example.org/v1', 'https://user:p@api.example.org/v1', "https://api.example.org/v1\r\nX: y", 'https://api.example.org/v1/%2e%2e/admin', 'https://api.example.org/v1/%2E./admin', 'https://api.example.org/v1/..%2fadmin', 'https://api.example.org/v1/..%5cadmin', 'https://api.example.org/v1/%252e%252e/admin', 'https://api.example.org/v1/..\\admin', 'https://api.example.org\\@evil.example.org/v1', 'https://api.example.org/v1/%00', 'https://api.example.org/v1/%zz', 'https://api.example.org/v1/%2', 'https://api.example.org:0/v1', 'https://api.example.org:99999/v1', 'https://api.example.org./v1', 'https://-api.example.org/v1', 'https://äpi.example.org/v1', 'https://api.example.org/../../v1', 'https://api.example.org/v1/' . str_repeat( 'x', 5000 ), [ 'https://api.example.org/v1' ], 7 ] as $asked ) {
				$t->same( 'uri_invalid', $code( static fn(): string => $read()->address( [ 'uri' => $asked ] )->text() ), (string) json_encode( $asked ) );
			}
			foreach ( [ 'chat' => '/v1/chat', '/chat?x=1' => '/v1/chat?x=1', '/' => '/v1/', 'models/x:generate' => '/v1/models/x:generate' ] as $asked => $expected ) {
				$t->same( 'https://api.example.org' . $expected, $code( static fn(): string => $read()->address( [ 'path' => $asked ] )->text() ), $asked );
			}
			foreach ( [ '', null, '//evil.example.org/', 'https://api.example.org/v1', 'javascript:x', '..%2fadmin', "a\nb", '../../../admin', [ 'chat' ] ] as $asked ) {
				$t->same( 'path_invalid', $code( static fn(): string => $read()->address( [ 'path' => $asked ] )->text() ), (string) json_encode( $asked ) );
			}
			$t->same( 'uri_forbidden', $code( static fn(): string => $read()->address( [ 'path' => '../admin' ] )->text() ) );
		}
	);
	$t->test(
		'a bridge policy that is incomplete or invalid refuses every request',
		static function () use ( $t, $read, $code, $send ): void {
			foreach ( [
				[ 'base_url_missing', [ 'allowed_base_urls' => [] ] ],
				[ 'base_url_missing', [ 'allowed_base_urls' => 'https://api.example.org' ] ],
				[ 'policy_invalid', [ 'allowed_base_urls' => [ 'https://api.example.org/v1', 'http://api.example.org/v1' ] ] ],
				[ 'policy_invalid', [ 'allowed_base_urls' => [ 'https://u:p@api.example.org/v1' ] ] ],
				[ 'policy_invalid', [ 'allowed_base_urls' => [ '*' ] ] ],
				[ 'policy_invalid', [ 'allowed_base_urls' => [ [] ] ] ],
				[ 'policy_invalid', [ 'provider' => 'another' ] ],
				[ 'policy_invalid', [ 'timeout' => 0 ] ],
				[ 'policy_invalid', [ 'timeout' => '30' ] ],
				[ 'authentication_missing', [ 'authentication' => null ] ],
				[ 'policy_invalid', [ 'authentication' => 7 ] ],
				[ 'policy_invalid', [ 'authenticate_request' => 'no_such_function' ] ],
			] as [ $expected, $more ] ) {
				$t->same( $expected, $code( static fn(): BridgePolicy => $read( $more ) ), (string) json_encode( $more ) );
			}
			$t->same( [ 60.0, 60.0, 2.5 ], [ $read()->timeout, $read( [ 'timeout' => 600 ] )->timeout, $read( [ 'timeout' => 2.5 ] )->timeout ] );
			foreach ( [ 'http://127.0.0.1:11434/v1', 'http://localhost:11434/v1', 'http://[::1]:11434/v1', 'https://10.0.0.1/v1' ] as $own ) {
				$t->true( $read( [ 'allowed_base_urls' => [ $own ] ] ) instanceof BridgePolicy, $own );
			}
			foreach ( [ [ 'x', 'bridge_policy_invalid', 500 ], [ new RuntimeException( 'bridge-key-of-the-test-0123' ), 'bridge_policy_invalid', 500 ], [ [], 'adapter_missing', 501 ], [ null, 'adapter_missing', 501 ] ] as [ $policy, $expected, $status ] ) {
				$t->error( 'wp_codebox_browser_provider_' . $expected, $status, $send( $policy, [ 'path' => 'x' ] ) );
			}
			$t->true( ! str_contains( (string) file_get_contents( getenv( 'TEST_WORK' ) . '/expected.log' ), 'bridge-key' ), 'the text of an exception is in the log' );
		}
	);
	$t->test(
		'the bridge adds the credential, drops authentication headers of the sandbox and redacts the response',
		static function () use ( $t, $http, $send, $with, $sent, $key ): void {
			$base = $http->provider();
			try {
				$answer = $send(
					$with( $base ),
					[
						'path'    => 'chat?x=1',
						'method'  => 'put',
						'headers' => [
							'Authorization'       => 'Bearer forged',
							'X-Api-Key'           => 'forged',
							'Cookie'              => 'forged=1',
							'Proxy-Authorization' => 'forged',
							'Host'                => 'evil.example.org',
							'X-Forwarded-For'     => '10.0.0.1',
							'Content-Length'      => '1',
							"X-Bad\r\nX-Worse"    => 'forged',
							'X-Value'             => "a\r\nX-Worse: forged",
							'Anthropic-Version'   => '2023-06-01',
							'X-Number'            => 5,
						],
						'data'    => [ 'max_tokens' => 5, 'empty' => new stdClass(), 'f' => 1.0 ],
					]
				);
				$seen   = $sent( $answer );
				$t->same( [ 'PUT', '/v1/chat?x=1', '{"max_tokens":5,"empty":{},"f":1.0}', 'application/json', '2023-06-01', '5', parse_url( $base, PHP_URL_HOST ) . ':' . parse_url( $base, PHP_URL_PORT ) ], [ $seen['method'], $seen['uri'], $seen['body'], $seen['headers']['CONTENT_TYPE'], $seen['headers']['HTTP_ANTHROPIC_VERSION'], $seen['headers']['HTTP_X_NUMBER'], $seen['headers']['HTTP_HOST'] ] );
				$t->true( ! str_contains( (string) json_encode( $seen ), 'forged' ) && ! isset( $seen['headers']['HTTP_X_FORWARDED_FOR'] ), 'a header of the sandbox travelled: ' . json_encode( $seen ) );
				$t->same( 'WP-Codebox/' . \WPCodebox\VERSION, $seen['headers']['HTTP_USER_AGENT'], 'the user agent names the site' );
				// The provider echoes the key: the key was sent, and the answer has a placeholder.
				$t->same( '[redacted]', $seen['headers']['HTTP_AUTHORIZATION'] ?? null );
				$t->same( [ '[redacted]', '[redacted]', 3, '[redacted]' ], [ $answer['response']['http']['headers']['set-cookie'], $answer['response']['http']['headers']['x-auth-token'], $seen['usage']['total_tokens'], $seen['token'] ] );
				$t->true( ! str_contains( (string) json_encode( [ $answer, $t->audited( 2 ) ] ), $key ) && ! str_contains( (string) json_encode( $answer ), 'secret-of' ), 'the answer contains a secret' );
				$t->same( [ 'localhost', true ], [ $answer['audit']['adapter']['uri_host'], in_array( 'Authorization', $answer['audit']['adapter']['dropped_headers'], true ) ] );
				// Positive control: a header without a secret name shows that the key was sent.
				$header = [ 'authentication' => [ 'type' => 'header', 'header' => 'X-Plain', 'credential' => 'TEST_AI_KEY' ] ];
				$t->same( '[REDACTED:configured-secret-value]', $sent( $send( $with( $base, $header ), [ 'path' => 'x', 'method' => 'GET' ] ) )['headers']['HTTP_X_PLAIN'] );
				$t->true( ! isset( $sent( $send( $with( $base, [ 'authentication' => [ 'type' => 'none' ] ] ), [ 'path' => 'x' ] ) )['headers']['HTTP_AUTHORIZATION'] ), 'the authentication type none adds no header' );
			} finally {
				$http->close();
			}
		}
	);
	$t->test(
		'redirected, compressed, oversized, slow and undecodable responses are not passed to the sandbox',
		static function () use ( $t, $http, $send, $with, $sent ): void {
			$base = $http->provider();
			try {
				$answer = $t->ok( $send( $with( $base ), [ 'path' => 'redirect' ] ) );
				$t->same( [ 302, '' ], [ $answer['response']['http']['status'], $answer['response']['http']['body'] ], 'the redirect was followed' );
				foreach ( [ 'packed', 'large' ] as $path ) {
					$t->error( 'wp_codebox_browser_provider_bridge_exception', 502, $send( $with( $base ), [ 'path' => $path ] ) );
				}
				$t->error( 'wp_codebox_browser_provider_adapter_invalid_response', 502, $send( $with( $base ), [ 'path' => 'bytes' ] ) );
				$began = microtime( true );
				$t->error( 'wp_codebox_browser_provider_bridge_exception', 502, $send( $with( $base, [ 'timeout' => 1 ] ), [ 'path' => 'slow' ] ) );
				$t->true( microtime( true ) - $began < 30, 'the timeout did not end the request' );
				$http->close();
				$t->error( 'wp_codebox_browser_provider_bridge_exception', 502, $send( $with( $base ), [ 'path' => 'x' ] ) );
				$base = $http->provider();
				$sent( $send( $with( $base ), [ 'path' => 'x' ] ) );
			} finally {
				$http->close();
			}
		}
	);
	$t->test(
		'a request with an unsupported operation, method, address or authentication is not sent',
		static function () use ( $t, $send, $with ): void {
			$calls = [];
			$catch = static function ( mixed $none, array $arguments, string $url ) use ( &$calls ): array {
				$calls[] = [ $url, $arguments ];
				return [
					'headers'  => [],
					'body'     => '',
					'response' => [ 'code' => 200, 'message' => 'OK' ],
					'cookies'  => [],
				];
			};
			$t->filtered(
				'pre_http_request',
				$catch,
				static function () use ( $t, $send, $with, &$calls ): void {
					$policy = $with( 'https://api.example.org' );
					foreach ( [
						[ 'provider_bridge_operation_unsupported', 400, [ 'path' => 'x' ], [ 'operation' => 'chat.completions' ], $policy ],
						[ 'provider_request_required', 400, [ 'path' => 'x', 'method' => 'CONNECT' ], [], $policy ],
						[ 'provider_request_required', 400, [ 'path' => 'x', 'body' => str_repeat( 'x', 1048577 ) ], [], $policy ],
						[ 'provider_bridge_uri_forbidden', 403, [ 'uri' => 'https://evil.example.org/v1' ], [], $policy ],
						[ 'provider_bridge_uri_forbidden', 403, [ 'path' => '../x' ], [], $policy ],
						[ 'provider_bridge_path_invalid', 400, [ 'x' => 1 ], [], $policy ],
						[ 'provider_bridge_authentication_strategy_missing', 500, [ 'path' => 'x' ], [], [ 'authentication' => [ 'credential' => 'TEST_AI_KEY' ] ] + $policy ],
						[ 'provider_bridge_authentication_strategy_invalid', 500, [ 'path' => 'x' ], [], [ 'authentication' => [ 'type' => 'basic', 'credential' => 'TEST_AI_KEY' ] ] + $policy ],
						[ 'provider_bridge_authentication_strategy_invalid', 500, [ 'path' => 'x' ], [], [ 'authentication' => [ 'type' => 'bearer', 'credential' => 'OTHER_KEY' ] ] + $policy ],
						[ 'provider_bridge_authentication_strategy_invalid', 500, [ 'path' => 'x' ], [], [ 'authentication' => [ 'type' => 'header', 'header' => "X\r\nY", 'credential' => 'TEST_AI_KEY' ] ] + $policy ],
					] as [ $expected, $status, $request, $more, $given ] ) {
						$t->error( 'wp_codebox_browser_' . $expected, $status, $send( $given, $request, $more ) );
					}
					$t->same( [], $calls, 'a refused request was sent' );
					$t->ok( $send( $policy, [ 'path' => 'x', 'method' => 'get' ] ) );
					[ $url, $arguments ] = $calls[0];
					$t->same( [ 'https://api.example.org/v1/x', 'GET', 0, true, false, true ], [ $url, $arguments['method'], $arguments['redirection'], $arguments['reject_unsafe_urls'], $arguments['decompress'], $arguments['sslverify'] ] );
					// A base address given as an IP address may be private; a host name must not resolve to a private address.
					$t->ok( $send( $with( 'https://10.0.0.1' ), [ 'path' => 'x' ] ) );
					$t->same( false, $calls[1][1]['reject_unsafe_urls'] );
				}
			);
		}
	);
	$t->test(
		'an authenticate_request callback may change URL and headers, and the bridge checks the result',
		static function () use ( $t, $http, $send, $with, $sent, $key ): void {
			$base = $http->provider();
			$own  = static fn( callable $how ): array => [ 'authenticate_request' => $how ] + $with( $base );
			try {
				$handed = null;
				$answer = $send(
					$own(
						static function ( array $request, array $values ) use ( &$handed ): array {
							$handed                          = $values;
							$request['headers']['X-Api-Key'] = 'Key minted-for-this-request';
							$request['uri']                 .= '?signature=signed-for-this-request';
							$request['body']                 = 'changed';
							return $request;
						}
					),
					[ 'path' => 'x', 'body' => 'as it was' ]
				);
				$seen   = $sent( $answer );
				$t->same( [ [ 'TEST_AI_KEY' => $key ], 'as it was', '/v1/x?signature=[REDACTED:configured-secret-value]' ], [ $handed, $seen['body'], $seen['uri'] ] );
				$t->true( ! str_contains( (string) json_encode( $answer ), 'for-this-request' ) && str_contains( $seen['said'], 'REDACTED' ), 'what the site put in came back: ' . $seen['said'] );
				foreach ( [
					[ 'uri_forbidden', 403, static fn( array $request ): array => [ 'uri' => str_replace( '/v1/', '/other/', $request['uri'] ) ] + $request ],
					[ 'uri_forbidden', 403, static fn( array $request ): array => [ 'uri' => 'http://127.0.0.1:9/v1/x' ] + $request ],
					[ 'authenticated_request_invalid', 500, static fn( array $request ): array => [ 'uri' => 'nowhere' ] + $request ],
					[ 'authenticated_request_invalid', 500, static fn( array $request ): array => [ 'headers' => 'x' ] + $request ],
					[ 'authenticated_request_invalid', 500, static fn( array $request ): array => [ 'headers' => [ 'X' => "a\r\nb" ] ] + $request ],
					[ 'authenticated_request_invalid', 500, static fn(): null => null ],
					[ 'authentication_failed', 502, static fn() => throw new RuntimeException( $key ) ],
					[ 'authentication_failed', 502, static fn(): WP_Error => new WP_Error( 'x', $key ) ],
				] as [ $expected, $status, $how ] ) {
					$error = $send( $own( $how ), [ 'path' => 'x' ] );
					$t->error( 'wp_codebox_browser_provider_bridge_' . $expected, $status, $error );
					$t->true( ! str_contains( (string) json_encode( [ $error->errors, $error->error_data, $t->audited( 2 ) ] ), $key ), 'the key is in the error' );
				}
			} finally {
				$http->close();
			}
		}
	);
	$t->test(
		'an adapter of a plugin runs before the bridge, and the bridge has a credential only during a request',
		static function () use ( $t, $send, $with, $key ): void {
			$first = static fn(): array => [ 'mine' => true ];
			add_filter( 'wp_codebox_browser_provider_request', $first, 5 );
			$answer = $send( $with( 'https://api.example.org' ), [ 'path' => 'x' ] );
			remove_filter( 'wp_codebox_browser_provider_request', $first, 5 );
			$t->same( [ 'mine' => true ], $t->ok( $answer )['response'] );
			$policy = $with( 'https://api.example.org' );
			add_filter( 'wp_codebox_browser_provider_bridge_policy', $given = static fn(): array => $policy );
			$error = apply_filters(
				'wp_codebox_browser_provider_request',
				null,
				[
					'operation' => 'http.request',
					'provider'  => 'test-provider',
					'request'   => [ 'path' => 'x' ],
				],
				[]
			);
			remove_filter( 'wp_codebox_browser_provider_bridge_policy', $given );
			$t->error( 'wp_codebox_browser_provider_bridge_authentication_strategy_invalid', 500, $error );
			$t->true( BridgeUrl::parse( 'https://api.example.org' )?->is_below( BridgeUrl::parse( 'https://api.example.org/' ) ), 'a base address without a path' );
		}
	);
};
