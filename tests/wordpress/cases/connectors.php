<?php
/**
 * Connector and provider requests: refusals, input of the handlers and redaction of their answers.
 */

declare(strict_types=1);

use WPCodebox\Connector\Redaction;
use WPCodebox\Connector\SecretNames;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Redactor;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$key    = 'conn/Ector key+"0123é';
	$ask    = [
		'connector' => 'test-ai',
		'operation' => 'chat.completions',
		'payload'   => [ 'max_tokens' => 7 ],
	];
	$legacy = [
		'operation' => 'chat.completions',
		'inherit'   => [ 'connectors' => [ 'test-ai' ] ],
		'request'   => [ 'max_tokens' => 7 ],
	];
	/** Calls the body as an administrator while this connector and these request handlers are registered. */
	$with   = static function ( array|Closure|null $spec, array $handlers, callable $body ) use ( $t ): mixed {
		$t->as( 'administrator' );
		$resolvers = static fn( array $all ): array => null === $spec ? $all : [ 'test-ai' => $spec ] + $all;
		add_filter( 'wp_codebox_connector_credential_resolvers', $resolvers );
		foreach ( $handlers as $hook => $handler ) {
			add_filter( $hook, $handler, 5, 3 );
		}
		try {
			return $body();
		} finally {
			remove_filter( 'wp_codebox_connector_credential_resolvers', $resolvers );
			foreach ( $handlers as $hook => $handler ) {
				remove_filter( $hook, $handler, 5 );
			}
		}
	};
	$spec   = static fn( mixed $value, array $more = [] ): array => $more + [
		'provider'      => 'test-provider',
		'secret_env'    => [ 'TEST_AI_KEY' ],
		'secret_values' => [ 'TEST_AI_KEY' => $value ],
	];
	$canon  = 'wp_codebox_browser_connector_request';
	$old    = 'wp_codebox_browser_provider_request';
	$failed = static function ( string $code, array $answer ) use ( $t ): void {
		$t->same( [ false, 'failed-closed', $code ], [ $answer['success'], $answer['status'], $answer['error']['code'] ?? null ], (string) json_encode( $answer ) );
		$t->same( [], array_intersect( [ 'response' ], array_keys( $answer ) ) );
	};

	$t->test(
		'a connector request without connector or operation, or with too large a payload, is refused',
		static function () use ( $t, $ask, $with, $spec, $key, $canon ): void {
			$with(
				$spec( $key ),
				[ $canon => static fn(): array => [ 'fine' => true ] ],
				static function () use ( $t, $ask ): void {
					foreach ( [ [], [ 'connector' => ' ' ] + $ask, [ 'operation' => '' ] + $ask, [ 'payload' => [ 'x' => str_repeat( 'x', 1100000 ) ] ] + $ask ] as $wrong ) {
						$t->error( 'wp_codebox_browser_connector_request_invalid', 400, $t->ability( 'browser-connector-request', $wrong ) );
					}
					$t->same( 'ability_invalid_input', $t->ability( 'browser-connector-request', $ask + [ 'base_url' => 'https://example.org' ] )->get_error_code() );
					$t->same( [ 'fine' => true ], $t->ok( $t->ability( 'browser-connector-request', [ 'payload' => [ 'x' => str_repeat( 'x', 1000000 ) ] ] + $ask ) )['response'] );
				}
			);
		}
	);
	$t->test(
		'an unresolved, unavailable or mismatched connector fails closed before the handler is called',
		static function () use ( $t, $ask, $with, $spec, $key, $canon, $failed ): void {
			$asked   = 0;
			$handler = static function () use ( &$asked ): array {
				++$asked;
				return [ 'fine' => true ];
			};
			$one     = static fn( array|Closure|null $spec, array $more = [] ): array => $with( $spec, [ $canon => $handler ], static fn(): array => $t->ok( $t->ability( 'browser-connector-request', $more + $ask ) ) );
			foreach ( [
				'unresolved'              => [
					[ null ],
					[ static fn() => throw new RuntimeException( $key ) ],
				],
				'credentials_unavailable' => [
					[ $spec( '' ) ],
					[ $spec( $key, [ 'status' => 'denied' ] ) ],
					[ $spec( $key, [ 'status' => 'perhaps' ] ) ],
					[ static fn(): string => 'no specification' ],
					[ $spec( '1234567' ) ],
					[ $spec( '1234567890123' ) ],
				],
				'provider_mismatch'       => [
					[ $spec( $key ), [ 'provider' => 'another' ] ],
					[ $spec( $key, [ 'provider' => '' ] ), [ 'provider' => 'another' ] ],
				],
				'model_mismatch'          => [ [ $spec( $key, [ 'model' => 'bound' ] ), [ 'model' => 'another' ] ] ],
			] as $code => $rows ) {
				foreach ( $rows as $row ) {
					$log    = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
					$answer = $one( ...$row );
					ini_set( 'error_log', (string) $log );
					$failed( 'wp_codebox_browser_connector_' . $code, $answer );
					$t->true( ! str_contains( (string) json_encode( [ $answer, $t->audited() ], JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES ), 'Ector' ), 'the answer or audit log contains a credential value' );
					$t->same( [ 'connector-request', 'failure', 'wp_codebox_browser_connector_' . $code ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
				}
			}
			$t->true( ! str_contains( (string) file_get_contents( getenv( 'TEST_WORK' ) . '/expected.log' ), 'Ector' ), 'the text of an exception is in the log' );
			$t->same( 0, $asked, 'the handler was called' );
			foreach ( [ [ $spec( $key ) ], [ $spec( '12345678a' ) ], [ $spec( $key ), [ 'provider' => 'test-provider' ] ], [ $spec( $key, [ 'model' => 'bound' ] ), [ 'model' => 'bound' ] ], [ $spec( $key ), [ 'model' => 'any' ] ] ] as $row ) {
				$t->same( 'completed', $one( ...$row )['status'] );
			}
			$t->same( 5, $asked, 'positive control' );
			$failed( 'wp_codebox_browser_connector_handler_missing', $with( $spec( $key ), [], static fn(): array => $t->ok( $t->ability( 'browser-connector-request', $ask ) ) ) );
		}
	);
	$t->test(
		'a credential that the site denies to this user is not passed to the handler',
		static function () use ( $t, $ask, $with, $spec, $key, $canon, $failed ): void {
			$deny = static fn( bool $allowed, string $kind, string $name ): bool => 'test-ai' !== $name;
			$run  = static fn(): array => $with( $spec( $key ), [ $canon => static fn(): array => [ 'fine' => true ] ], static fn(): array => $t->ok( $t->ability( 'browser-connector-request', $ask ) ) );
			$failed( 'wp_codebox_browser_connector_credentials_unavailable', $t->filtered( 'wp_codebox_can_use_credentials', $deny, $run ) );
			$t->same( 'completed', $run()['status'] );
		}
	);
	$t->test(
		'the handler gets the credentials and the whole request; the caller gets neither value nor source',
		static function () use ( $t, $ask, $with, $spec, $key, $canon ): void {
			$seen   = null;
			$input  = $ask + [
				'session'       => [ 'id' => 's' ],
				'context'       => [ 'a' => 'b' ],
				'authorization' => [
					'caller' => 'somebody',
					'scope'  => 'artifact:write',
				],
			];
			$answer = $with(
				$spec( $key, [ 'model' => 'm' ] ),
				[
					$canon => static function ( mixed $answer, array $request, array $raw ) use ( &$seen ): array {
						$seen = [ $answer, $request, $raw ];
						return [ 'ok' => new stdClass() ];
					},
				],
				static fn(): array => $t->ok( $t->ability( 'browser-connector-request', $input ) )
			);
			[ $null, $request, $raw ] = $seen;
			$t->same( [ null, [ 'TEST_AI_KEY' => $key ], 'test-provider', 'm', [ 'max_tokens' => 7 ], [ 'id' => 's' ], [ 'a' => 'b' ] ], [ $null, $request['credentials'], $request['provider'], $request['model'], $request['payload'], $request['session'], $request['context'] ] );
			$t->same( $input, $raw );
			$schema = static fn( string $name ): array => json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . "/dist/wp-codebox/abilities/schemas/$name.v1.schema.json" ), true );
			$t->same( true, rest_validate_value_from_schema( $request, $schema( 'browser-connector-request' ), 'request' ) );
			$t->same( true, rest_validate_value_from_schema( $answer['audit']['authorization'], $schema( 'trusted-orchestrator-authorization' ), 'authorization' ) );
			$t->same( [ 'user:1', 'browser-connector:request', true, 'capability-held', [ 'caller' => 'somebody', 'scope' => 'artifact:write' ] ], array_map( static fn( string $field ): mixed => $answer['audit']['authorization'][ $field ], [ 'caller', 'scope', 'authorized', 'reason', 'claimed' ] ) );
			$t->same( '{"ok":{}}', json_encode( $answer['response'] ), 'an empty object was encoded as a list' );
			$t->same( [ [ 'TEST_AI_KEY' ], 'available', [ [ 'name' => 'TEST_AI_KEY', 'status' => 'available' ] ] ], [ $answer['audit']['credential_names'], $answer['audit']['credential_status'], $answer['credentials'] ] );
			$rows = $t->audited( 2 );
			$t->same( [ 'started', 'success' ], array_column( $rows, 'status' ) );
			$t->same( [ 'test-ai', 'chat.completions', 'trusted-orchestrator-authorization' ], [ $rows[1]['connector'], $rows[1]['operation'], basename( dirname( $rows[1]['authorization']['schema'] ) ) ] );
			$t->same( true, rest_validate_value_from_schema( $rows[1], $schema( 'apply-audit' ), 'record' ) );
		}
	);
	$t->test(
		'a credential value is removed from answers, errors and audit log in every encoding',
		static function () use ( $t, $ask, $legacy, $with, $spec, $key, $canon, $old ): void {
			$leak    = new class( $key ) implements JsonSerializable {
				public function __construct( private string $value ) {}
				public function jsonSerialize(): mixed {
					return [ 'hidden' => $this->value ];
				}
			};
			$forms   = [ $key, strrev( $key ), base64_encode( $key ), base64_encode( 'x' . $key ), base64_encode( 'xy' . $key . 'z' ), bin2hex( $key ), strtoupper( bin2hex( $key ) ), rawurlencode( $key ), urlencode( $key ), (string) json_encode( [ 'k' => $key ] ), (string) json_encode( [ 'k' => $key ], JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES ), "Bearer $key." ];
			$answers = [ [ 'all' => $forms ], [ $key => 1 ], [ 'deep' => [ [ [ [ 'x' => "a $key b" ] ] ] ] ], [ 'object' => $leak ], [ 'list' => (object) [ '0' => $key ] ], [ 'success' => true, 'response' => [ 'x' => $key ] ], [ 'success' => false, 'error' => [ 'code' => $key, 'message' => "no: $key" ] ], new WP_Error( 'plugin_code', "no: $key", [ 'status' => 418, 'detail' => [ $key ] ] ), new WP_Error( $key, '' ), $key ];
			$look    = static function ( mixed $answer, mixed $what ) use ( $t, $key ): void {
				$text = (string) json_encode( [ is_wp_error( $answer ) ? [ $answer->errors, $answer->error_data ] : $answer, $t->audited( 2 ) ], JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES );
				foreach ( [ $key, json_encode( $key ), strrev( $key ), 'Ector', 'rotcE', substr( base64_encode( $key ), 4, 16 ), substr( base64_encode( 'x' . $key ), 8, 12 ), substr( base64_encode( 'xy' . $key ), 8, 12 ), bin2hex( 'Ector' ), strtoupper( bin2hex( 'Ector' ) ) ] as $form ) {
					$t->true( ! str_contains( $text, trim( (string) $form, '"' ) ), "$form came back of " . json_encode( $what ) . "\n$text" );
				}
			};
			foreach ( $answers as $answer ) {
				$seen = 0;
				$give = static function ( mixed $none, array $request ) use ( $answer, &$seen ): mixed {
					$seen += (int) isset( $request['credentials'] );
					return $answer;
				};
				$look( $with( $spec( $key ), [ $canon => $give ], static fn(): mixed => $t->ability( 'browser-connector-request', $ask ) ), $answer );
				$look( $with( $spec( $key ), [ $old => $give ], static fn(): mixed => $t->ability( 'execute-browser-provider-request', $legacy ) ), $answer );
				$t->same( 1, $seen, 'positive control: the handler had it' );
			}
			// Positive control: an answer without secrets is returned unchanged.
			$good = [ 'text' => 'Ector is a name', 'list' => [ 1, 2.5, true, null, 'é' ] ];
			$t->same( $good, $with( $spec( $key ), [ $canon => static fn(): array => $good ], static fn(): array => $t->ok( $t->ability( 'browser-connector-request', $ask ) ) )['response'] );
		}
	);
	$t->test(
		'a handler that throws or returns an invalid response fails closed, and only its location is logged',
		static function () use ( $t, $ask, $with, $spec, $key, $canon, $failed ): void {
			$deep = [];
			for ( $i = 0; $i < 80; ++$i ) {
				$deep = [ $deep ];
			}
			$log  = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$run  = static fn( callable $handler ): array => $with( $spec( $key ), [ $canon => $handler ], static fn(): array => $t->ok( $t->ability( 'browser-connector-request', $ask ) ) );
			$failed( 'wp_codebox_browser_connector_handler_failed', $run( static fn() => throw new RuntimeException( "the key $key" ) ) );
			$failed( 'wp_codebox_browser_connector_handler_failed', $run( static fn( mixed $none, array $request ) => intdiv( 1, 0 ) ) );
			$failed( 'wp_codebox_browser_connector_handler_failed', $run( static fn(): array => [ 'success' => false ] ) );
			foreach ( [ 'text', 7, true, new stdClass(), [ "\xff" ], [ str_repeat( 'x', 2200000 ) ], $deep, [ NAN ] ] as $rubbish ) {
				$failed( 'wp_codebox_browser_connector_response_invalid', $run( static fn(): mixed => $rubbish ) );
			}
			ini_set( 'error_log', (string) $log );
			$text = (string) file_get_contents( getenv( 'TEST_WORK' ) . '/expected.log' );
			$t->contains( 'wp-codebox: RuntimeException in ', $text );
			$t->true( ! str_contains( $text, 'Ector' ), 'the text of the exception is in the log' );
			$t->same( 'completed', $run( static fn(): array => [] )['status'] );
		}
	);
	$t->test(
		'redaction covers names of secret fields and headers and spares usual fields of model APIs',
		static function () use ( $t ): void {
			$kept = [
				'max_tokens'        => 100,
				'usage'             => [ 'total_tokens' => 3, 'prompt_tokens_details' => [ 'cached_tokens' => 1 ] ],
				'key'               => 'k',
				'value'             => 'v',
				'primary_key'       => 'id',
				'keywords'          => [ 'a' ],
				'token_type'        => 'bearer',
				'tokens'            => [ 'Hel', 'lo' ],
				'next_page_token'   => 'abc',
				'stop_token'        => '</s>',
				'logprobs'          => [ [ 'token' => 'Hello', 'logprob' => -0.5 ] ],
				'secret_env'        => [ 'OPENAI_API_KEY' ],
				'credential_status' => 'available',
				'password'          => null,
				'api_key'           => false,
				'maxTokens'         => 5,
				'author'            => 'Mary',
			];
			$t->same( $kept, Redaction::clean( $kept ) );
			foreach ( [ 'authorization', 'Authorization', 'proxy-authorization', 'api_key', 'apiKey', 'x-api-key', 'APIKEY', 'secret', 'client_secret', 'clientSecret', 'password', 'db_passwd', 'passphrase', 'credentials', 'private_key', 'privateKey', 'access_token', 'accessToken', 'refresh_token', 'id_token', 'token', 'session_token', 'cookie', 'set-cookie', 'aws_secret_access_key', 'signing_key' ] as $name ) {
				$t->same( [ $name => '[redacted]', 'other' => 'x' ], Redaction::clean( [ $name => 'x', 'other' => 'x' ] ), $name );
				$t->same( [ $name => '[redacted]' ], Redaction::clean( [ $name => [ 'x' ] ] ), $name );
				$t->true( SecretNames::in_header( $name ) || 'credentials' === $name, $name );
			}
			foreach ( [ 'Content-Type', 'Accept', 'anthropic-version', 'X-Request-Id', 'Idempotency-Key' ] as $name ) {
				$t->same( false, SecretNames::in_header( $name ), $name );
			}
		}
	);
	$t->test(
		'PHP code of this site needs no grant, and the answer marks its request as site-code',
		static function () use ( $t, $ask, $with, $spec, $key, $canon ): void {
			$run = static fn( string $role ): array => $with(
				$spec( $key ),
				[ $canon => static fn(): array => [ 'fine' => true ] ],
				static function () use ( $t, $ask, $role ): array {
					$t->as( $role );
					return [ is_wp_error( $t->ability( 'browser-connector-request', $ask ) ), $t->ok( WP_Codebox_API::browser_connector_request( $ask ) )['audit']['authorization'] ];
				}
			);
			[ $refused, $decision ] = $run( 'nobody' );
			$t->same( [ true, true, 'site-code', '' ], [ $refused, $decision['authorized'], $decision['method'], $decision['caller'] ] );
			[ $refused, $decision ] = $run( 'administrator' );
			$t->same( [ false, 'capability' ], [ $refused, $decision['method'] ] );
		}
	);
	$t->test(
		'provider request: every refusal has its code, and a request without an adapter is refused',
		static function () use ( $t, $legacy, $with, $spec, $key, $old ): void {
			$asked   = 0;
			$adapter = static function () use ( &$asked ): array {
				++$asked;
				return [ 'fine' => true ];
			};
			$run     = static fn( array $input, array|Closure|null $with_spec ): mixed => $with( $with_spec, [ $old => $adapter ], static fn(): mixed => $t->ability( 'execute-browser-provider-request', $input ) );
			foreach ( [
				[ 'browser_provider_operation_required', 400, [ 'operation' => '' ], $spec( $key ) ],
				[ 'browser_provider_request_required', 400, [ 'request' => [] ], $spec( $key ) ],
				[ 'browser_provider_request_required', 400, [ 'request' => [ 'x' => str_repeat( 'x', 1100000 ) ] ], $spec( $key ) ],
				[ 'browser_provider_connector_required', 400, [ 'inherit' => [] ], $spec( $key ) ],
				[ 'browser_provider_connector_required', 400, [ 'connector' => 'not-inherited' ], $spec( $key ) ],
				[ 'browser_connector_unresolved', 404, [], null ],
				[ 'browser_connector_credentials_unavailable', 403, [], $spec( '' ) ],
				[ 'browser_connector_provider_mismatch', 409, [ 'provider' => 'another' ], $spec( $key ) ],
				[ 'browser_connector_model_mismatch', 409, [ 'model' => 'a' ], $spec( $key, [ 'model' => 'b' ] ) ],
			] as [ $code, $status, $more, $given ] ) {
				$t->error( 'wp_codebox_' . $code, $status, $run( $more + $legacy, $given ) );
			}
			$t->same( 0, $asked, 'an adapter was called' );
			$t->error( 'wp_codebox_browser_provider_adapter_missing', 501, $with( $spec( $key ), [], static fn(): mixed => $t->ability( 'execute-browser-provider-request', $legacy ) ) );
			$t->same( [ 'provider-request', 'failure' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'] ] );
			$t->same( [ true, [ 'fine' => true ] ], [ $t->ok( $run( $legacy, $spec( $key ) ) )['success'], $t->ok( $run( $legacy, $spec( $key ) ) )['response'] ] );
			$t->same( 2, $asked, 'positive control' );
		}
	);
	$t->test(
		'provider request: the adapter gets a redacted request without credentials, and its answer is checked',
		static function () use ( $t, $legacy, $with, $spec, $key, $old ): void {
			$seen  = null;
			$input = [
				'request'       => [
					'max_tokens' => 7,
					'key'        => 'k',
					'headers'    => [ 'Authorization' => 'Bearer caller' ],
					'options'    => [ 'apiKey' => 'caller', 'empty' => new stdClass() ],
				],
				'session_id'    => 's',
				'job_id'        => 'j',
				'orchestrator'  => [ 'id' => 'o', 'token' => 'caller' ],
				'authorization' => [ 'caller' => 'forged' ],
			] + $legacy;
			$give  = static function ( mixed $answer ) use ( &$seen ): Closure {
				return static function ( mixed $none, array $request, array $raw ) use ( &$seen, $answer ): mixed {
					$seen = [ $request, $raw ];
					return $answer;
				};
			};
			$run   = static fn( mixed $answer ): mixed => $with( $spec( $key ), [ $old => $give( $answer ) ], static fn(): mixed => $t->ability( 'execute-browser-provider-request', $input ) );
			$done  = $t->ok( $run( [ 'choices' => [] ] ) );
			[ $request, $raw ] = $seen;
			$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/browser-provider-adapter-request.v1.schema.json' ), true );
			$t->same( true, rest_validate_value_from_schema( $request, $schema, 'request' ) );
			$t->same( [ 7, 'k', '[redacted]', '[redacted]', '[redacted]' ], [ $request['request']['max_tokens'], $request['request']['key'], $request['request']['headers']['Authorization'], $request['request']['options']['apiKey'], $request['context']['orchestrator']['token'] ] );
			$t->same( [ 'user:1', 'browser-connector:request', 's', 'j' ], [ $request['context']['caller'], $request['context']['authorization_scope'], $request['context']['session_id'], $request['context']['job_id'] ] );
			$t->true( ! str_contains( serialize( $request ), 'Ector' ), 'the adapter got a credential value' );
			$t->same( 'Bearer caller', $raw['request']['headers']['Authorization'], 'the raw input is unchanged' );
			$t->same( [ 'choices' ], $done['audit']['response']['fields'] );
			$t->true( ! str_contains( (string) json_encode( $t->audited( 2 ) ), 'Bearer caller' ), 'the request is in the log' );
			$log = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			foreach ( [ 'text', 3, true, [ "\xff" ] ] as $rubbish ) {
				$t->error( 'wp_codebox_browser_provider_adapter_invalid_response', 502, $run( $rubbish ) );
			}
			$t->error( 'wp_codebox_browser_provider_adapter_invalid_response', 502, $with( $spec( $key ), [ $old => static fn() => throw new RuntimeException( $key ) ], static fn(): mixed => $t->ability( 'execute-browser-provider-request', $input ) ) );
			ini_set( 'error_log', (string) $log );
			$refused = $run( new WP_Error( 'plugin_code', 'No.', [ 'status' => 418, 'api_key' => 'x', 'detail' => 'd' ] ) );
			$t->error( 'plugin_code', 418, $refused );
			$t->same( [ '[redacted]', 'd' ], [ $refused->get_error_data()['api_key'], $refused->get_error_data()['detail'] ] );
			$t->same( [ false, [ 'x' => 1 ] ], array_values( array_intersect_key( $t->ok( $run( [ 'success' => false, 'response' => [ 'x' => 1 ] ] ) ), [ 'success' => 1, 'response' => 1 ] ) ) );
		}
	);
	$t->test(
		'credential values that redaction cannot recognize are not handed out',
		static function () use ( $t ): void {
			$t->same( [ 'A', 'B' ], Redaction::unprotected( [ 'A' => 'short', 'B' => '123456789', 'C' => 'long enough' ] ) );
			$t->true( ! str_contains( Redactor::text( 'x long enough x', [ 'long enough' ] ), 'long enough' ), 'positive control' );
			$caught = null;
			try {
				Redaction::plain( [ fopen( 'php://memory', 'r' ) ], ErrorCode::InputInvalid, 'It' );
			} catch ( Failure $failure ) {
				$caught = $failure->error_code;
			}
			$t->same( 'wp_codebox_input_invalid', $caught );
		}
	);
};
