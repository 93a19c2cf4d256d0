<?php
/**
 * Connector requests over real HTTP: authorization, and a complete request to a scripted model.
 */

declare(strict_types=1);

use WPCodebox\Settings;
use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Http;

return static function ( Harness $t ): void {
	require_once dirname( __DIR__ ) . '/http.php';
	// Only the HTTP servers load the example plugin.
	$content = WP_CONTENT_DIR . '/mu-plugins/host-connector.php';
	$http    = new Http( $t );
	$input   = [
		'connector' => 'primary-ai',
		'operation' => 'chat.completions',
		'payload'   => [
			'messages'   => [
				[
					'role'    => 'user',
					'content' => 'Hello',
				],
			],
			'max_tokens' => 50,
		],
	];
	$member  = static function ( string $login, string $role = 'subscriber' ): int {
		$user = get_user_by( 'login', $login );
		$id   = $user ? $user->ID : (int) wp_insert_user(
			[
				'user_login' => $login,
				'user_pass'  => wp_generate_password(),
				'user_email' => $login . '@example.org',
				'role'       => $role,
			]
		);
		return $id;
	};
	/** Creates an application password; returns its id and its plain text. */
	$password = static function ( int $user, string $name ): array {
		[ $typed, $item ] = WP_Application_Passwords::create_new_application_password( $user, [ 'name' => $name . ' ' . wp_rand() ] );
		return [ $item['uuid'], $typed ];
	};
	$grant    = static function ( array $grants ) use ( $t ): void {
		update_site_option( Settings::TRUSTED_CALLERS, $grants );
		$t->same( $grants, get_site_option( Settings::TRUSTED_CALLERS ), 'the grants were not stored' );
	};
	/** Runs the test while the site and the scripted model are served. */
	$served   = static function ( callable $body ) use ( $http, $content ): Closure {
		return static function () use ( $body, $http, $content ): void {
			copy( getenv( 'TEST_ROOT' ) . '/tests/fixtures/host-connector/host-connector.php', $content );
			$aloud          = [
				'fault'   => 'status',
				'status'  => 401,
				'message' => 'Your key ${key} is not good, ${key}!',
			];
			[ $base, $log ] = $http->model(
				[
					'good' => [
						'turns' => [ [ 'text' => 'Hello from the model' ] ],
						'after' => 'repeat',
					],
					'echo' => [
						'turns' => [ $aloud ],
						'after' => 'repeat',
					],
				]
			);
			update_option( 'host_connector_base_url', "$base/good/x/v1" );
			try {
				$body( $http->site(), $base, $log );
			} finally {
				$http->close();
				unlink( $content );
				delete_option( 'host_connector_base_url' );
				delete_site_option( Settings::TRUSTED_CALLERS );
			}
		};
	};

	$t->test(
		'the connector ability answers only users who may run tasks and application passwords with this scope',
		$served( static function ( int $port ) use ( $t, $http, $input, $member, $password, $grant ): void {
			$ask                     = static fn( string $user, ?string $typed, array $more = [] ): array => $http->ability( $port, 'browser-connector-request', $input + $more, null === $typed ? [] : [ 'user' => $user, 'password' => $typed ] );
			$one                     = $member( 'orchestrator' );
			$two                     = $member( 'bystander', 'editor' );
			[ $granted, $typed ]     = $password( $one, 'granted' );
			[ , $typed_none ]        = $password( $one, 'nothing' );
			[ , $typed_two ]         = $password( $two, 'bystander' );
			[ , $typed_admin ]       = $password( 1, 'admin' );
			$claims                  = [
				'authorization' => [
					'schema' => 'wp-codebox/trusted-orchestrator-authorization/v1',
					'caller' => $granted,
					'scope'  => 'browser-connector:request',
				],
			];
			$t->same( 403, $ask( 'orchestrator', $typed )[0], 'before any grant' );
			$grant( [ $granted => [ 'browser-connector:request' ] ] );
			[ $status, $answer ] = $ask( 'orchestrator', $typed, $claims );
			$t->same( [ 200, true, 'completed' ], [ $status, $answer['success'] ?? null, $answer['status'] ?? null ], (string) json_encode( $answer ) );
			$t->same( [ $granted, 'trusted-orchestrator', 'trusted-caller-grant', true ], [ $answer['audit']['authorization']['caller'], $answer['audit']['authorization']['method'], $answer['audit']['authorization']['reason'], $answer['audit']['authorization']['authorized'] ] );
			$t->same( 200, $ask( 'orchestrator', $typed )[0], 'the authorization field is optional' );
			foreach ( [
				'another password of the same user'    => [ 'orchestrator', $typed_none, 403 ],
				'another user who names the granted'   => [ 'bystander', $typed_two, 403 ],
				'the granted password, another login'  => [ 'bystander', $typed, 401 ],
				'nobody who names the granted'         => [ '', null, 401 ],
			] as $what => [ $user, $secret, $expected ] ) {
				$t->same( $expected, $ask( $user, $secret, $claims )[0], $what );
			}
			$t->same( 403, $http->ability( $port, 'execute-browser-provider-request', [], [ 'user' => 'orchestrator', 'password' => $typed_none ] )[0], 'the older ability needs the same scope' );
			$t->same( 'wp_codebox_browser_provider_operation_required', $http->ability( $port, 'execute-browser-provider-request', [], [ 'user' => 'orchestrator', 'password' => $typed ] )[1]['code'] ?? '', 'the scope opens the older ability' );
			$t->same( 403, $http->ability( $port, 'run-agent-task', [ 'goal' => 'x' ], [ 'user' => 'orchestrator', 'password' => $typed ] )[0], 'the grant opens nothing else' );
			[ $status, $answer ] = $ask( 'admin', $typed_admin );
			$t->same( [ 200, 'capability', 'user:1' ], [ $status, $answer['audit']['authorization']['method'] ?? null, $answer['audit']['authorization']['caller'] ?? null ] );
		} )
	);
	$t->test(
		'the import abilities answer users who may review and application passwords with the scope artifact:write',
		$served( static function ( int $port ) use ( $t, $http, $member, $password, $grant ): void {
			$one                       = $member( 'orchestrator' );
			[ $writer, $typed_writer ] = $password( $one, 'writer' );
			[ $asker, $typed_asker ]   = $password( $one, 'asker' );
			[ , $typed_admin ]         = $password( 1, 'admin' );
			$grant( [ $writer => [ 'artifact:write' ], $asker => [ 'browser-connector:request' ] ] );
			$claims = [ 'authorization' => [ 'schema' => 'wp-codebox/trusted-orchestrator-authorization/v1', 'caller' => $asker, 'scope' => 'artifact:write' ] ];
			$ask    = static fn( string $ability, string $user, ?string $typed, array $input ): array => $http->ability( $port, $ability, $input, null === $typed ? [] : [ 'user' => $user, 'password' => $typed ] );
			// An archive that is no bundle: the answer says that the call passed the permission check.
			foreach ( [
				'import-artifact-bundle'   => [ [ 'archive' => base64_encode( 'no archive' ) ] + $claims, 'wp_codebox_artifact_import_source_invalid' ],
				'reimport-artifact-bundle' => [ $claims, 'wp_codebox_artifact_id_missing' ],
			] as $ability => [ $input, $code ] ) {
				foreach ( [
					'the granted password' => [ 'orchestrator', $typed_writer, 400 ],
					'the administrator'    => [ 'admin', $typed_admin, 400 ],
					'another scope'        => [ 'orchestrator', $typed_asker, 403 ],
					'nobody'               => [ '', null, 401 ],
				] as $who => [ $user, $typed, $status ] ) {
					$answer = $ask( $ability, $user, $typed, $input );
					$t->same( $status, $answer[0], "$ability: $who" );
					$t->same( 400 === $status, ( $answer[1]['code'] ?? '' ) === $code, "$ability: $who" );
				}
			}
			$t->same( 400, $ask( 'import-artifact-bundle', 'orchestrator', $typed_writer, [ 'authorization' => [ 'scope' => 'everything' ] ] )[0], 'another scope in the claim' );
			foreach ( [ 'browser-connector-request' => [ 'connector' => 'x', 'operation' => 'x' ], 'run-agent-task' => [ 'goal' => 'x' ], 'review-artifact' => [ 'artifact_id' => 'x' ] ] as $ability => $input ) {
				$t->same( 403, $ask( $ability, 'orchestrator', $typed_writer, $input )[0], "the grant does not open $ability" );
			}
		} )
	);
	$t->test(
		'a grant does not count for cookie sessions, revoked passwords or disabled application passwords',
		$served( static function ( int $port ) use ( $t, $http, $input, $member, $password, $grant ): void {
			$one                 = $member( 'orchestrator' );
			[ $granted, $typed ] = $password( $one, 'granted' );
			$grant( [ $granted => [ 'browser-connector:request' ] ] );
			$basic = [
				'user'     => 'orchestrator',
				'password' => $typed,
			];
			$ask   = static fn( array $options, int $at ): int => $http->ability( $at, 'browser-connector-request', $input, $options )[0];
			$t->same( 200, $ask( $basic, $port ), 'positive control' );
			$session = $http->session( $one );
			$t->same( 403, $ask( [ 'headers' => $session ], $port ), 'cookie and nonce' );
			$t->same( 403, $ask( $basic + [ 'headers' => $session ], $port ), 'cookie, nonce and the password: core takes the cookie' );
			$t->same( 200, $ask( [ 'headers' => $http->session( 1 ) ], $port ), 'positive control: the cookie of an administrator' );
			$t->same( 401, $ask( [ 'headers' => [ $http->session( 1 )[0] ] ], $port ), 'a cookie without its nonce' );
			// Without TLS core accepts application passwords only in a local environment.
			$t->same( 401, $ask( $basic, $http->site( [ 'WP_ENVIRONMENT_TYPE' => 'production' ] ) ), 'application passwords are off' );
			$t->same( 200, $ask( $basic, $port ), 'positive control' );
			WP_Application_Passwords::delete_application_password( $one, $granted );
			$t->same( 401, $ask( $basic, $port ), 'revoked' );
			[ , $again ] = $password( $one, 'granted' );
			$t->same( 403, $ask( [ 'password' => $again ] + $basic, $port ), 'a new password of the same name is not the old one' );
			[ $other, $typed_other ] = $password( $one, 'granted' );
			$grant( [ $other => [ 'browser-connector:request' ] ] );
			$t->same( 200, $ask( [ 'password' => $typed_other ] + $basic, $port ), 'positive control: until it is granted' );
		} )
	);
	$t->test(
		'a request reaches the model with the key of this site, and no answer or log contains the key',
		$served( static function ( int $port, string $base, string $log ) use ( $t, $http, $input, $password ): void {
			[ , $typed ] = $password( 1, 'admin' );
			$admin       = [
				'user'     => 'admin',
				'password' => $typed,
			];
			[ $status, $answer ] = $http->ability( $port, 'browser-connector-request', $input, $admin );
			$t->same( 200, $status, (string) json_encode( $answer ) );
			$t->same( 'Hello from the model', $answer['response']['choices'][0]['message']['content'] ?? $answer );
			$t->true( is_int( $answer['response']['usage']['total_tokens'] ?? null ), 'the token count was redacted' );
			$t->same( [ [ 'name' => 'EXAMPLE_AI_API_KEY', 'status' => 'available' ] ], $answer['credentials'] );
			[ $status, $legacy ] = $http->ability(
				$port,
				'execute-browser-provider-request',
				[
					'operation' => 'http.request',
					'inherit'   => [ 'connectors' => [ 'primary-ai' ] ],
					'request'   => [
						'path'    => 'chat/completions',
						'headers' => [ 'Authorization' => 'Bearer forged' ],
						'data'    => $input['payload'] + [ 'model' => 'm' ],
					],
				],
				$admin
			);
			$t->same( [ 200, true, 200 ], [ $status, $legacy['success'] ?? null, $legacy['response']['http']['status'] ?? null ], (string) json_encode( $legacy ) );
			$t->contains( 'Hello from the model', $legacy['response']['http']['body'] );
			$rows = array_map( static fn( string $line ): array => json_decode( $line, true ), array_filter( explode( "\n", (string) file_get_contents( $log ) ) ) );
			$t->same( array_fill( 0, 2, hash( 'sha256', Http::KEY ) ), array_column( $rows, 'key_sha256' ), 'digests of the keys that the model received' );
			// The model returns the key in its error message.
			update_option( 'host_connector_base_url', "$base/echo/x/v1" );
			[ , $failed ] = $http->ability( $port, 'browser-connector-request', $input, $admin );
			$t->same( [ 'failed-closed', 'host_connector_refused' ], [ $failed['status'] ?? null, $failed['error']['code'] ?? null ], (string) json_encode( $failed ) );
			$t->contains( 'is not good', $failed['error']['message'] );
			[ , $bridged ] = $http->ability( $port, 'execute-browser-provider-request', [ 'operation' => 'http.request', 'inherit' => [ 'connectors' => [ 'primary-ai' ] ], 'request' => [ 'path' => 'chat/completions', 'data' => $input['payload'] + [ 'model' => 'm' ] ] ], $admin );
			$t->same( [ false, 401 ], [ $bridged['success'] ?? null, $bridged['response']['http']['status'] ?? null ], (string) json_encode( $bridged ) );
			$t->contains( 'is not good', $bridged['response']['http']['body'] );
			$t->contains( Http::KEY, 'positive control ' . Http::KEY );
			foreach ( [ json_encode( [ $answer, $legacy, $failed, $bridged ] ), json_encode( $t->audited( 12 ) ), (string) file_get_contents( $log ), $http->said(), is_file( getenv( 'TEST_WORK' ) . '/debug.log' ) ? (string) file_get_contents( getenv( 'TEST_WORK' ) . '/debug.log' ) : '' ] as $text ) {
				$t->true( ! str_contains( $text, Http::KEY ), 'the key is in: ' . substr( $text, 0, 300 ) );
			}
			$t->true( count( array_filter( $t->audited( 12 ), static fn( array $row ): bool => 'connector-request' === $row['event'] ) ) >= 4, 'the audit log lacks the requests' );
		} )
	);
};
