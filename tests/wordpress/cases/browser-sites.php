<?php
/**
 * Contained sites in a browser: recovery, references and their refusals, exports, synchronisation, REST routes.
 */

declare(strict_types=1);

use WPCodebox\Browser\RefToken;
use WPCodebox\Browser\SessionRecord;
use WPCodebox\Browser\SessionStore;
use WPCodebox\Tests\BrowserAssets;
use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Published;

require_once dirname( __DIR__ ) . '/browser.php';
require_once dirname( __DIR__ ) . '/published.php';

return static function ( Harness $t ): void {
	$number = 0;
	/** Makes a session whose site no other test has. */
	$made   = static function ( array $more = [] ) use ( $t, &$number ): array {
		return $t->ok( $t->ability( 'create-browser-contained-site-session', $more + [ 'goal' => 'Look', 'landing_page' => '/n' . ++$number . '/' ] ) );
	};
	$answer = static fn( string $ability, array $input ): array => Published::answers( $t, $ability, $t->ability( $ability, $input ) );
	$state  = static fn( array $site ): array => ( static fn( array $status ): array => [ $status['success'], $status['status'], $status['resolution']['reason'] ] )( $answer( 'get-browser-contained-site-status', [ 'contained_site' => $site ] ) );
	$test   = static fn( string $about, callable $body ) => $t->test( "browser site: $about", static fn() => BrowserAssets::with( $t, $body ) );
	/** Calls the body as another administrator. */
	$other  = static function ( callable $body ): mixed {
		$known = get_user_by( 'login', 'second-admin' );
		$user  = $known ? $known->ID : (int) wp_insert_user( [ 'user_login' => 'second-admin', 'user_pass' => wp_generate_password(), 'user_email' => 'second@example.org', 'role' => 'administrator' ] );
		$mine  = get_current_user_id();
		wp_set_current_user( $user );
		try {
			return $body();
		} finally {
			wp_set_current_user( $mine );
		}
	};
	/** Makes the stored session and runtime of a site expire. */
	$expire = static function ( array $site ): void {
		foreach ( [ 'wp_codebox_browser_session_record_' . substr( hash( 'sha256', $site['session_id'] ), 0, 32 ), 'wp_codebox_browser_prepared_runtime_' . substr( hash( 'sha256', 'user:' . get_current_user_id() . ":{$site['site_id']}:{$site['source_digest']['value']}" ), 0, 24 ) ] as $name ) {
			$stored = get_transient( $name );
			set_transient( $name, [ 'expires_at' => time() - 1 ] + $stored, 60 );
		}
	};

	$test(
		'its status is recoverable by handle, key or digest, and reading it changes nothing',
		static function () use ( $t, $made, $answer ): void {
			$site = Published::answers( $t, 'create-browser-contained-site-session', $made() )['contained_site'];
			$ways = [ [ 'contained_site' => $site ], [ 'site_id' => $site['site_id'] ], $site['recovery']['input'], [ 'cache_key' => $site['site_id'], 'source_digest' => $site['source_digest']['value'] ] ];
			foreach ( $ways as $input ) {
				$status = $answer( 'get-browser-contained-site-status', $input );
				$t->same( [ true, 'recoverable', 'recoverable_prepared_runtime', $site['site_id'] ], [ $status['success'], $status['status'], $status['resolution']['reason'], $status['site_id'] ] );
				$t->same( "prepared:{$site['site_id']}:{$site['source_digest']['value']}", $status['blueprint_ref']['ref'] );
				$t->same( $status, $answer( 'get-browser-contained-site-status', $input ), 'idempotent' );
			}
			$annotations = wp_get_ability( 'wp-codebox/get-browser-contained-site-status' )->get_meta()['annotations'];
			$t->same( [ true, false, true ], [ $annotations['readonly'], $annotations['destructive'], $annotations['idempotent'] ] );
		}
	);
	$test(
		'each reason why it cannot be recovered is a miss with its own word',
		static function ( BrowserAssets $assets ) use ( $t, $made, $state, $other, $expire, $answer ): void {
			$site = $made()['contained_site'];
			$good = [ true, 'recoverable', 'recoverable_prepared_runtime' ];
			$t->same( $good, $state( $site ), 'control' );
			$t->same( [ false, 'miss', 'cache_miss' ], $state( [ 'site_id' => 'prepared-unknown' ] + $site ) );
			$t->same( [ false, 'miss', 'input_hash_mismatch' ], $state( [ 'source_digest' => [ 'algorithm' => 'sha256', 'value' => str_repeat( 'b', 64 ) ] ] + array_diff_key( $site, [ 'recovery' => 1 ] ) ) );
			$t->same( [ false, 'miss', 'foreign' ], $other( static fn() => $state( $site ) ) );
			$assets->core = 'c1';
			$t->same( [ false, 'miss', 'incompatible' ], $state( $site ), 'WordPress was updated' );
			$assets->core = 'c0';
			$t->same( $good, $state( $site ), 'control' );
			$expire( $site );
			$t->same( [ false, 'miss', 'expired_transient' ], $state( $site ) );
			$t->error( 'wp_codebox_browser_contained_site_ref_missing', 400, $t->ability( 'get-browser-contained-site-status', [] ) );
			foreach ( [ [ 'site_id' => 'a', 'cache_key' => 'b' ], [ 'site_id' => '../a' ], [ 'site_id' => 'a', 'input_hash' => 'x' ] ] as $input ) {
				$t->error( 'wp_codebox_browser_contained_site_ref_invalid', 400, $t->ability( 'get-browser-contained-site-status', $input ) );
			}
		}
	);
	$test(
		'a reference that is tampered, foreign, expired, replayed or of other sources gives no blueprint, each with its code',
		static function ( BrowserAssets $assets ) use ( $t, $made, $other, $expire ): void {
			$read  = static fn( array $input ): mixed => $t->ability( 'hydrate-browser-blueprint-ref', $input );
			$site  = $made()['contained_site'];
			$ref   = $site['blueprint_ref'];
			$both  = [ 'ref' => $ref['ref'], 'token' => $ref['token'] ];
			$pair  = [ 'cache_key' => $ref['cache_key'], 'input_hash' => $ref['input_hash'] ];
			foreach ( [ $both, $pair, [ 'ref' => $ref['ref'] ], [ 'token' => $ref['token'] ] ] as $input ) {
				$t->same( $ref['ref'], $t->ok( $read( $input ) )['blueprint_ref']['ref'], 'control' );
			}
			[ $claims, $mac ] = explode( '.', $ref['token'] );
			$forged           = rtrim( strtr( base64_encode( (string) json_encode( [ $ref['ref'], get_current_user_id(), 1, 's', time() + 99 ] ) ), '+/', '-_' ), '=' );
			$second           = $made()['contained_site']['blueprint_ref'];
			foreach ( [ "$forged.$mac", $claims . '.' . strrev( $mac ), $claims, 'x', "$claims.$mac.x", $second['token'] ] as $token ) {
				$t->error( 'wp_codebox_browser_blueprint_ref_tampered', 403, $read( [ 'token' => $token ] + $both ) );
			}
			foreach ( [ $both, $pair, [ 'ref' => $ref['ref'] ] ] as $input ) {
				$t->error( 'wp_codebox_browser_blueprint_ref_foreign', 403, $other( static fn() => $read( $input ) ) );
			}
			$t->error( 'wp_codebox_browser_blueprint_ref_input_hash_mismatch', 409, $read( [ 'ref' => "prepared:{$ref['cache_key']}:" . str_repeat( 'c', 64 ) ] ) );
			$t->error( 'wp_codebox_browser_blueprint_ref_cache_miss', 409, $read( [ 'ref' => 'prepared:none:' . str_repeat( 'c', 64 ) ] ) );
			foreach ( [ [], [ 'cache_key' => 'x' ], [ 'ref' => 'prepared:x' ], [ 'ref' => 'stored:a:' . str_repeat( 'c', 64 ) ] ] as $input ) {
				$t->error( 'wp_codebox_browser_blueprint_ref_missing', 409, $read( $input ) );
			}
			$assets->core = 'c2';
			$t->error( 'wp_codebox_browser_blueprint_ref_input_hash_mismatch', 409, $read( $both ) );
			$assets->core = 'c0';
			$record  = ( new SessionStore() )->get( $site['session_id'] );
			$expired = RefToken::of( $ref['ref'], SessionRecord::from( [ 'expires_at' => time() - 1 ] + $record->to_array() ) );
			$t->error( 'wp_codebox_browser_blueprint_ref_expired', 409, $read( [ 'token' => $expired ] + $both ) );
			$t->ok( $read( $both ) );
			$said = static function () use ( $ref ): string {
				try {
					return RefToken::read( $ref['token'], $ref['ref'] )['session_id'];
				} catch ( WPCodebox\Failure $failure ) {
					return $failure->error_code;
				}
			};
			$t->same( [ $site['session_id'], 'wp_codebox_browser_blueprint_ref_foreign' ], [ $said(), $other( $said ) ], 'the token itself' );
			// A session that was ended: its references are not used again.
			$t->same( 'released', $t->ok( $t->ability( 'destroy-browser-contained-site-session', [ 'contained_site' => $site ] ) )['action'] );
			foreach ( [ $both, $pair ] as $input ) {
				$t->error( 'wp_codebox_browser_blueprint_ref_replayed', 409, $read( $input ) );
			}
			$third = $made()['contained_site'];
			$expire( $third );
			$t->error( 'wp_codebox_browser_blueprint_ref_expired', 409, $read( [ 'ref' => $third['blueprint_ref']['ref'] ] ) );
			$data = $read( [ 'ref' => $third['blueprint_ref']['ref'] ] )->get_error_data();
			$t->same( [ 'prepare-new', true ], [ $data['action'], $data['prepare_new_required'] ] );
		}
	);
	$test(
		'a second session of the same site replaces the token of the first, and no other user can take its key',
		static function () use ( $t, $made, $other ): void {
			$input  = [ 'landing_page' => '/same/', 'runtime' => [ 'prepared' => [ 'cache_key' => 'shared', 'input_hash' => str_repeat( 'd', 64 ) ] ] ];
			$first  = $made( $input )['contained_site']['blueprint_ref'];
			$second = $made( $input )['contained_site']['blueprint_ref'];
			$t->same( $first['ref'], $second['ref'] );
			$t->error( 'wp_codebox_browser_blueprint_ref_replayed', 409, $t->ability( 'hydrate-browser-blueprint-ref', [ 'token' => $first['token'] ] ) );
			$t->same( $second['session_id'], $t->ok( $t->ability( 'hydrate-browser-blueprint-ref', [ 'token' => $second['token'] ] ) )['blueprint_ref']['session_id'] );
			$theirs = $other( static fn() => $made( $input + [ 'blueprint' => [ 'landingPage' => '/evil/' ] ] )['contained_site']['blueprint_ref'] );
			$t->same( $first['ref'], $theirs['ref'] );
			$t->same( '/same/', $t->ok( $t->ability( 'hydrate-browser-blueprint-ref', [ 'ref' => $first['ref'] ] ) )['blueprint']['landingPage'], 'the own runtime stays' );
			$t->error( 'wp_codebox_browser_session_foreign', 403, $other( static fn() => $t->ability( 'create-browser-contained-site-session', [ 'goal' => 'x', 'sandbox_session_id' => $second['session_id'] ] ) ) );
		}
	);
	$test(
		'code that changed after the session was made is not handed out as its baseline',
		static function ( BrowserAssets $assets ) use ( $t, $made ): void {
			$ref  = $made( [ 'roots' => [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] ] )['contained_site']['blueprint_ref']['ref'];
			$read = static fn(): mixed => $t->ability( 'hydrate-browser-blueprint-ref', [ 'ref' => $ref ] );
			$t->ok( $read() );
			$assets->code = 'edited';
			$t->error( 'wp_codebox_browser_blueprint_ref_input_hash_mismatch', 409, $read() );
		}
	);
	$test(
		'it opens, boots and ends, and a handle of another session or scope is refused',
		static function () use ( $t, $made, $answer, $state ): void {
			$site = $made()['contained_site'];
			$open = $answer( 'open-browser-contained-site', [ 'contained_site' => $site ] );
			$t->same( [ 'recoverable', 'recoverable_prepared_runtime', $site['session_id'] ], [ $open['status'], $open['contained_site']['status'], $open['preview_boot']['session_id'] ] );
			$t->same( $open['blueprint_ref'], $answer( 'boot-browser-contained-site-session', [ 'contained_site' => $site, 'preview_lease' => $open['preview_lease'] ] )['boot']['blueprint_ref'] );
			$t->same( $site['blueprint_ref']['ref'], $answer( 'preview-boot-ref', [ 'site_id' => $site['site_id'] ] )['blueprint_ref']['ref'] );
			$t->error( 'wp_codebox_browser_contained_site_session_mismatch', 409, $t->ability( 'boot-browser-contained-site-session', [ 'site_id' => $site['site_id'], 'session_id' => 'other' ] ) );
			$t->error( 'wp_codebox_browser_contained_site_session_mismatch', 409, $t->ability( 'preview-boot-ref', [ 'contained_site' => $site, 'preview_lease' => [ 'session_id' => 'other' ] ] ) );
			$t->error( 'wp_codebox_browser_contained_site_scope_mismatch', 409, $t->ability( 'snapshot-browser-contained-site', [ 'contained_site' => $site, 'scope' => 'other' ] ) );
			$t->error( 'wp_codebox_browser_contained_site_stale_digest', 409, $t->ability( 'preview-boot-ref', [ 'site_id' => $site['site_id'], 'input_hash' => str_repeat( 'e', 64 ) ] ) );
			$t->same( 'released', $answer( 'destroy-browser-contained-site-session', [ 'contained_site' => $site ] )['action'] );
			$t->same( 'noop', $answer( 'destroy-browser-contained-site-session', [ 'contained_site' => $site ] )['action'] );
			$t->same( [ false, 'miss', 'replayed' ], $state( $site ) );
			$t->error( 'wp_codebox_browser_contained_site_unavailable', 409, $t->ability( 'boot-browser-contained-site-session', [ 'contained_site' => $site ] ) );
		}
	);
	$test(
		'the reuse decision and open-or-create follow the mode',
		static function () use ( $t, $made, $answer ): void {
			$site   = $made()['contained_site'];
			$decide = static fn( array $input ): string => $answer( 'preview-reuse-decision', $input )['action'];
			$t->same( 'hydrate-ref', $decide( [ 'contained_site' => $site ] ) );
			$t->same( 'reuse-current', $decide( [ 'contained_site' => [ 'live' => true ] + $site ] ) );
			$t->same( 'create-new', $decide( [ 'contained_site' => $site, 'policy' => [ 'reuse' => 'never' ] ] ) );
			$t->same( 'create-new', $decide( [ 'site_id' => 'none' ] ) );
			$t->same( 'reload-required', $decide( [ 'site_id' => $site['site_id'], 'input_hash' => str_repeat( 'f', 64 ) ] ) );
			$try = static fn( array $input ): array => $answer( 'open-or-create-browser-contained-site', $input );
			$t->same( 'opened', $try( [ 'mode' => 'open-only', 'contained_site' => $site ] )['action'] );
			$t->same( 'opened', $try( [ 'mode' => 'open-or-create', 'contained_site' => $site, 'goal' => 'x' ] )['action'] );
			$created = $try( [ 'mode' => 'open-or-create', 'site_id' => 'none', 'goal' => 'x' ] );
			$t->same( [ true, 'created' ], [ $created['success'], $created['action'] ] );
			$t->same( 'created', $try( [ 'mode' => 'prepare-new', 'contained_site' => $site, 'goal' => 'x' ] )['action'] );
			$missing = $try( [ 'mode' => 'open-only', 'site_id' => 'none' ] );
			$t->same( [ false, 'unavailable', 'wp_codebox_browser_contained_site_unavailable' ], [ $missing['success'], $missing['action'], $missing['error']['code'] ] );
			$t->error( 'wp_codebox_browser_contained_site_mode_required', 400, $t->ability( 'open-or-create-browser-contained-site', [ 'goal' => 'x' ] ) );
		}
	);
	$test(
		'snapshots, exports and plans describe the site, and no plan changes this host',
		static function () use ( $t, $made, $answer ): void {
			$site = $made()['contained_site'];
			$t->same( 'preview-contract', $answer( 'snapshot-browser-contained-site', [ 'contained_site' => $site ] )['snapshot']['status'] );
			$t->same( false, $answer( 'export-browser-contained-site', [ 'contained_site' => $site ] )['export']['captured'] );
			$plan = $answer( 'plan-browser-contained-site-apply', [ 'contained_site' => $site, 'changes' => [ [ 'path' => 'a.php', 'status' => 'added' ] ], 'apply' => true, 'allow_host_mutation' => true ] );
			$t->same( [ 'ready-for-host-apply', 1, false ], [ $plan['plan']['status'], $plan['plan']['operation_count'], $plan['host_mutation'] ] );
			$t->same( 'preview-only', $answer( 'plan-browser-contained-site-apply', [ 'contained_site' => $site ] )['plan']['status'] );
			$t->same( [ true, 'previewed' ], ( static fn( array $done ): array => [ $done['success'], $done['result']['status'] ] )( $answer( 'apply-browser-contained-site-plan', [ 'contained_site' => $site, 'plan' => $plan['plan'] ] ) ) );
			$refused = $answer( 'apply-browser-contained-site-plan', [ 'contained_site' => $site, 'plan' => $plan['plan'], 'allow_host_mutation' => true ] );
			$t->same( [ false, 'not-applied', false, 'wp_codebox_input_invalid' ], [ $refused['success'], $refused['result']['status'], $refused['host_mutation'], $refused['error']['code'] ] );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'plan-browser-contained-site-apply', [ 'contained_site' => $site, 'changes' => [ [ 'status' => 'added' ] ] ] ) );
		}
	);
	$test(
		'synchronisation is unavailable without a backend, and a backend answers every operation',
		static function () use ( $t, $made, $answer, $other ): void {
			$site = $made()['contained_site'];
			$all  = [ 'source-connect', 'manifest', 'export', 'apply-plan-generate', 'apply-plan-validate', 'apply' ];
			foreach ( [ 'delegation', ...$all ] as $operation ) {
				$none = $answer( "browser-contained-site-sync-$operation", [ 'contained_site' => $site ] );
				$t->same( [ false, 'unavailable' ], [ $none['success'], $none['status'] ], $operation );
			}
			$yes  = static fn(): bool => true;
			$seen = [];
			$work = static function ( mixed $result, string $operation, array $input, array $delegation ) use ( &$seen ): array {
				$seen[] = [ $operation, $delegation['status'] ];
				return [ 'status' => 'done', 'result' => [ 'for' => $input['site_id'] ], 'validation_hash' => 'v' ];
			};
			add_filter( 'wp_codebox_browser_contained_site_sync_backend_available', $yes );
			try {
				$t->same( 'available', $answer( 'browser-contained-site-sync-delegation', [] )['status'] );
				$t->filtered(
					'wp_codebox_browser_contained_site_sync_request',
					$work,
					static function () use ( $t, $answer, $all, $site, &$seen ): void {
						foreach ( $all as $operation ) {
							$done = $answer( "browser-contained-site-sync-$operation", [ 'site_id' => $site['site_id'] ] );
							$t->same( [ true, 'done', $operation, [ 'for' => $site['site_id'] ] ], [ $done['success'], $done['status'], $done['operation'], $done['result'] ] );
						}
						$t->same( array_map( static fn( string $operation ): array => [ $operation, 'available' ], $all ), $seen );
					},
					4
				);
				$t->filtered( 'wp_codebox_browser_contained_site_sync_request', static fn(): string => 'x', static fn() => $t->error( 'wp_codebox_browser_contained_site_sync_failed', 502, $t->ability( 'browser-contained-site-sync-manifest', [] ) ) );
				$t->error( 'wp_codebox_browser_blueprint_ref_foreign', 403, $other( static fn() => $t->ability( 'browser-contained-site-sync-manifest', [ 'contained_site' => $site ] ) ) );
			} finally {
				remove_filter( 'wp_codebox_browser_contained_site_sync_backend_available', $yes );
			}
		}
	);
	$test(
		'the REST routes ask for the right of the ability, not only for a login, and answer like it',
		static function () use ( $t, $made, $other ): void {
			$site = $made()['contained_site'];
			$ref  = $site['blueprint_ref'];
			$call = static function ( string $method, string $path, array $input = [] ): array {
				$request = new WP_REST_Request( $method, '/wp-codebox/v1' . $path );
				'GET' === $method ? $request->set_query_params( $input ) : $request->set_body( (string) wp_json_encode( $input ) );
				$request->set_header( 'Content-Type', 'application/json' );
				$answer = rest_do_request( $request );
				return [ $answer->get_status(), $answer->get_data() ];
			};
			$routes = [ [ 'GET', '/browser-blueprint-ref/' . $ref['ref'], [] ], [ 'GET', '/browser-blueprint-ref', [ 'ref' => $ref['ref'] ] ], [ 'POST', '/preview-boot-ref', [ 'site_id' => $site['site_id'] ] ], [ 'GET', '/browser-contained-site-sync/delegation', [] ], [ 'POST', '/browser-contained-site-sync/manifest', [ 'site_id' => $site['site_id'] ] ] ];
			foreach ( $routes as $route ) {
				[ $status, $data ] = $call( ...$route );
				$t->same( 200, $status, $route[1] . wp_json_encode( $data ) );
			}
			$t->same( $ref['ref'], $call( ...$routes[0] )[1]['blueprint_ref']['ref'] );
			$t->same( 403, $other( static fn() => $call( ...$routes[0] )[0] ) );
			$t->as( 'editor' );
			foreach ( $routes as $route ) {
				$t->same( 403, $call( ...$route )[0], $route[1] );
			}
			wp_set_current_user( 0 );
			foreach ( $routes as $route ) {
				$t->same( 401, $call( ...$route )[0], $route[1] );
			}
			$t->as( 'administrator' );
			$t->same( [ 404, 'wp_codebox_browser_contained_site_sync_operation_invalid' ], ( static fn( array $no ): array => [ $no[0], $no[1]['code'] ] )( $call( 'POST', '/browser-contained-site-sync/steal' ) ) );
		}
	);
	$test(
		'a session store tells unknown, expired and foreign sessions apart',
		static function () use ( $t, $made, $other, $expire ): void {
			$store = new SessionStore();
			$code  = static function ( callable $call ): string {
				try {
					$call();
				} catch ( WPCodebox\Failure $failure ) {
					return $failure->error_code;
				}
				return 'accepted';
			};
			$site  = $made()['contained_site'];
			$read  = static fn() => $store->get( $site['session_id'] );
			$t->same( 'accepted', $code( $read ) );
			$t->same( 'wp_codebox_browser_session_unknown', $code( static fn() => $store->get( 'none' ) ) );
			$t->same( 'wp_codebox_browser_session_foreign', $other( static fn() => $code( $read ) ) );
			$expire( $site );
			$t->same( 'wp_codebox_browser_session_expired', $code( $read ) );
		}
	);
	$test(
		'a picture of an archived site is checked and answered as unsupported',
		static function () use ( $t, $answer ): void {
			$good = [ 'archive_base64' => base64_encode( "PK\x05\x06" . str_repeat( "\0", 18 ) ), 'route' => '/about/', 'viewport' => [ 'width' => 800, 'height' => 600 ] ];
			$t->same( [ false, 'unsupported' ], ( static fn( array $no ): array => [ $no['success'], $no['status'] ] )( $answer( 'replay-browser-viewport', $good ) ) );
			$t->error( 'wp_codebox_viewport_replay_archive_invalid', 400, $t->ability( 'replay-browser-viewport', [ 'archive_base64' => 'AAAA' ] + $good ) );
			$t->error( 'wp_codebox_viewport_replay_route_invalid', 400, $t->ability( 'replay-browser-viewport', [ 'route' => 'https://x/' ] + $good ) );
		}
	);
};
