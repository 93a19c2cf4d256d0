<?php
/**
 * Scopes granted to application passwords (which requests a password may make): authorization, validation, settings page.
 */

declare(strict_types=1);

use WPCodebox\Admin\CallersField;
use WPCodebox\Capabilities;
use WPCodebox\Connector\CallerGrants;
use WPCodebox\Connector\Scope;
use WPCodebox\Connector\TrustedCallers;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	require_once ABSPATH . 'wp-admin/includes/admin.php';
	$settings = new Settings();
	$callers  = new TrustedCallers( $settings, new Capabilities() );
	$user     = static function ( string $login ): int {
		$known = get_user_by( 'login', $login );
		return $known ? $known->ID : (int) wp_insert_user(
			[
				'user_login' => $login,
				'user_pass'  => wp_generate_password(),
				'user_email' => $login . '@example.org',
				'role'       => 'subscriber',
			]
		);
	};
	/** Creates an application password and returns its id. */
	$password = static fn( int $user, string $name = 'x' ): string => WP_Application_Passwords::create_new_application_password( $user, [ 'name' => $name . ' ' . wp_rand() ] )[1]['uuid'];
	/** Returns the decision about a request that core authenticated with this application password. */
	$decide   = static function ( int $current, ?string $uuid, Scope $scope = Scope::RequestConnector, mixed $claimed = null ) use ( $callers ): array {
		$GLOBALS['wp_rest_application_password_uuid'] = $uuid;
		wp_set_current_user( $current );
		try {
			$decision = $callers->decide( $scope, $claimed );
			return [ $decision->authorized, $decision->reason, $decision->caller ];
		} finally {
			$GLOBALS['wp_rest_application_password_uuid'] = null;
		}
	};
	/** Enables application passwords for a test and removes the scopes that it granted afterwards. */
	$clean    = static function ( callable $body ): Closure {
		return static function () use ( $body ): void {
			global $wp_settings_errors;
			$wp_settings_errors = [];
			add_filter( 'wp_is_application_passwords_available', '__return_true' );
			try {
				$body();
			} finally {
				remove_filter( 'wp_is_application_passwords_available', '__return_true' );
				delete_site_option( Settings::TRUSTED_CALLERS );
			}
		};
	};

	$t->test(
		'a grant to an application password allows only its scope, and an empty or unknown scope allows nothing',
		$clean( static function () use ( $t, $user, $password, $decide ): void {
			$one   = $user( 'scoped' );
			$uuids = [];
			foreach ( Scope::cases() as $scope ) {
				$uuids[ $scope->value ] = $password( $one );
			}
			// Stores grants without validation, like data of an older version.
			$old = array_combine( $uuids, array_map( static fn( string $scope ): array => [ $scope ], array_keys( $uuids ) ) );
			$t->filtered(
				'pre_site_option_' . Settings::TRUSTED_CALLERS,
				static fn(): array => $old,
				static function () use ( $t, $uuids, $one, $decide ): void {
					foreach ( $uuids as $granted => $uuid ) {
						foreach ( Scope::cases() as $scope ) {
							$good = $scope->value === $granted;
							$t->same( [ $good, $good ? 'trusted-caller-grant' : 'missing-scope', $uuid ], $decide( $one, $uuid, $scope ), "$granted for $scope->value" );
						}
					}
				}
			);
			update_site_option( Settings::TRUSTED_CALLERS, [ $uuids['browser-connector:request'] => [ 'browser-connector:request' ] ] );
			// Stores invalid grants without validation, like a database import.
			$bad = array_fill_keys( array_values( $uuids ), [] );
			foreach ( [ [ 'everything' ], [ '*' ], 'browser-connector:request', [ [ 'browser-connector:request' ] ], [ 'browser-connector:request ' ], true, null ] as $scopes ) {
				add_filter( 'pre_site_option_' . Settings::TRUSTED_CALLERS, $given = static fn(): array => array_fill_keys( array_keys( $bad ), $scopes ) );
				$t->same( false, $decide( $one, $uuids['browser-connector:request'] )[0], (string) json_encode( $scopes ) );
				remove_filter( 'pre_site_option_' . Settings::TRUSTED_CALLERS, $given );
			}
			$t->same( true, $decide( $one, $uuids['browser-connector:request'] )[0], 'positive control' );
		} )
	);
	$t->test(
		'a grant counts only for an existing application password of the current user',
		$clean( static function () use ( $t, $user, $password, $decide ): void {
			$one  = $user( 'scoped' );
			$two  = $user( 'other' );
			$uuid = $password( $one );
			update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request' ] ] );
			$control = static fn(): null => $t->same( [ true, 'trusted-caller-grant', $uuid ], $decide( $one, $uuid ), 'positive control' );
			$control();
			// Core stores the id for the whole request, even if code of the site switches the user.
			$t->same( [ false, 'caller-not-trusted', $uuid ], $decide( $two, $uuid ), 'another user' );
			$t->same( [ false, 'missing-authorization', '' ], $decide( 0, $uuid ), 'nobody' );
			$t->same( [ false, 'missing-authorization', 'user:' . $one ], $decide( $one, null ), 'no application password' );
			$t->same( [ false, 'caller-not-trusted', 'x' ], $decide( $one, 'x' ), 'an invalid id' );
			$t->same( [ false, 'missing-authorization' ], array_slice( $decide( $one, null, Scope::RequestConnector, [ 'caller' => $uuid, 'scope' => 'browser-connector:request', 'authorized' => true ] ), 0, 2 ), 'a claimed authorization' );
			$off = static fn( bool $available, WP_User $who ): bool => $who->ID !== $one;
			add_filter( 'wp_is_application_passwords_available_for_user', $off, 10, 2 );
			$t->same( false, $decide( $one, $uuid )[0], 'application passwords are disabled for this user' );
			remove_filter( 'wp_is_application_passwords_available_for_user', $off );
			add_filter( 'wp_is_application_passwords_available', '__return_false', 20 );
			$t->same( false, $decide( $one, $uuid )[0], 'application passwords are disabled' );
			remove_filter( 'wp_is_application_passwords_available', '__return_false', 20 );
			$control();
			WP_Application_Passwords::delete_application_password( $one, $uuid );
			$t->same( [ false, 'caller-not-trusted', $uuid ], $decide( $one, $uuid ), 'revoked while the request lasts' );
		} )
	);
	$t->test(
		'the filter of trusted callers can remove grants of application passwords and cannot add any',
		$clean( static function () use ( $t, $user, $password, $decide, $settings ): void {
			$one   = $user( 'scoped' );
			$uuid  = $password( $one );
			$other = $password( $one );
			$both  = [ 'browser-connector:request', 'artifact:write' ];
			update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request' ] ] );
			$t->same( [ $uuid => [ 'browser-connector:request' ] ], $settings->trusted_callers() );
			foreach ( [
				[ [], false ],
				[ null, false ],
				[ true, false ],
				[ [ $uuid ], false ],
				[ [ [ 'caller' => $uuid, 'scopes' => $both ] ], true ],
				[ [ [ 'caller' => $uuid, 'scope' => 'artifact:write' ] ], false ],
				[ [ [ 'caller' => $other, 'scopes' => $both ] ], false ],
				[ [ $uuid => 'browser-connector:request' ], false ],
				[ [ $uuid => [ 'artifact:write' ] ], false ],
				[ [ $uuid => [ 'browser-connector:request' ] ], true ],
				[ [ $uuid => $both, $other => $both ], true ],
			] as [ $answer, $expected ] ) {
				$t->filtered(
					'wp_codebox_trusted_browser_session_callers',
					static fn(): mixed => $answer,
					static function () use ( $t, $one, $uuid, $other, $decide, $answer, $expected ): void {
						$t->same( $expected, $decide( $one, $uuid )[0], (string) json_encode( $answer ) );
						$t->same( false, $decide( $one, $other )[0], 'the filter added a grant' );
					}
				);
			}
			$t->same( true, $decide( $one, $uuid )[0] );
		} )
	);
	$t->test(
		'a user who may run tasks needs no application password grant, and a user denied by the filter cannot use one',
		$clean( static function () use ( $t, $password, $decide ): void {
			$uuid = $password( 1 );
			$t->same( [ true, 'capability-held', 'user:1' ], $decide( 1, null ) );
			$only = static fn( string $needs ): Closure => static fn( bool $allowed, string $capability ): bool => $allowed && $capability === $needs;
			foreach ( [ Capabilities::RUN, Capabilities::REVIEW ] as $held ) {
				$t->filtered(
					'wp_codebox_can_run_agent_task',
					$only( $held ),
					static fn() => $t->same( [ Capabilities::RUN === $held, Capabilities::REVIEW === $held ], [ $decide( 1, null )[0], $decide( 1, null, Scope::WriteArtifacts )[0] ], "each scope needs its own capability: $held" )
				);
			}
			update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request' ] ] );
			$t->filtered( 'wp_codebox_can_run_agent_task', '__return_false', static fn() => $t->same( [ false, 'capability-narrowed', 'user:1' ], $decide( 1, $uuid ) ) );
			$t->same( true, $decide( 1, $uuid )[0] );
		} )
	);
	$t->test(
		'only ids of existing application passwords and known scopes are stored',
		$clean( static function () use ( $t, $user, $password ): void {
			$uuid  = $password( $user( 'scoped' ) );
			$gone  = $password( $user( 'scoped' ) );
			$good  = [ $uuid => [ 'browser-connector:request' ] ];
			$store = static function ( mixed $value ): array {
				global $wp_settings_errors;
				$wp_settings_errors = [];
				update_site_option( Settings::TRUSTED_CALLERS, $value );
				return [ get_site_option( Settings::TRUSTED_CALLERS ), array_column( get_settings_errors( Settings::TRUSTED_CALLERS ), 'message' ) ];
			};
			$t->same( [ $good, [] ], $store( $good ) );
			WP_Application_Passwords::delete_application_password( $user( 'scoped' ), $gone );
			foreach ( [
				[ 'text', 'must be a map' ],
				[ [ 'orchestrator' => [ 'browser-connector:request' ] ], 'by the id' ],
				[ [ 'abcd EFGH ijkl MNOP qrst UVWX' => [ 'browser-connector:request' ] ], 'by the id' ],
				[ [ $uuid => [ 'browser-session:delete' ] ], 'one of: browser-connector:request, artifact:write, browser-session:create.' ],
				[ [ $uuid => [ 'browser-connector:request', 'browser-session:delete' ] ], 'one of: browser-connector:request, artifact:write, browser-session:create.' ],
				[ [ $uuid => [ 'everything' ] ], 'one of: browser-connector:request, artifact:write, browser-session:create.' ],
				[ [ $uuid => 'everything' ], 'one of: browser-connector:request, artifact:write, browser-session:create.' ],
				[ [ $uuid => [ [ 'x' ] ] ], 'one of: browser-connector:request, artifact:write, browser-session:create.' ],
				[ [ $gone => [ 'browser-connector:request' ] ], 'no application password' ],
				[ [ '00000000-0000-4000-8000-000000000000' => [ 'browser-connector:request' ] ] + $good, 'no application password' ],
			] as [ $value, $text ] ) {
				[ $stored, $said ] = $store( $value );
				$t->same( [ $good, 1 ], [ $stored, count( $said ) ], (string) json_encode( $value ) );
				$t->contains( $text, $said[0] );
			}
			$t->same( [ [ $uuid => [ 'browser-connector:request', 'artifact:write' ] ], [] ], $store( [ $uuid => [ 'artifact:write', 'browser-connector:request' ] ] ), 'both scopes' );
			$store( $good );
			$t->same( $good, sanitize_option( Settings::TRUSTED_CALLERS, $good ), 'stored values pass the rules unchanged' );
			foreach ( [ '', null, [], [ $uuid => [] ], [ $uuid => [ '' ] ], [ '00000000-0000-4000-8000-000000000000' => [ '' ] ] ] as $none ) {
				$t->same( [ [], [] ], $store( $none ), (string) json_encode( $none ) );
				$store( $good );
			}
			$t->same( [ $good, [] ], $store( [ strtoupper( $uuid ) => [ 'browser-connector:request', 'browser-connector:request' ] ] ), 'ids are lowercased and scopes deduplicated' );
		} )
	);
	$t->test(
		'the settings page lists application passwords by name and user and shows no password or hash',
		$clean( static function () use ( $t, $user, $settings ): void {
			$one             = $user( 'scoped' );
			[ $typed, $row ] = WP_Application_Passwords::create_new_application_password( $one, [ 'name' => 'A "<b>name</b>" ' . wp_rand() ] );
			WP_Application_Passwords::create_new_application_password( $one, [ 'name' => 'Another ' . wp_rand() ] );
			update_site_option( Settings::TRUSTED_CALLERS, [ $row['uuid'] => [ 'browser-connector:request' ] ] );
			ob_start();
			( new CallersField( $settings ) )->render();
			$html  = (string) ob_get_clean();
			$known = WP_Application_Passwords::get_user_application_password( $one, $row['uuid'] );
			$t->true( ! str_contains( $html, $typed ) && ! str_contains( $html, $known['password'] ) && ! str_contains( $html, esc_html( $known['password'] ) ), 'a password or its hash is on the page' );
			$document = new DOMDocument();
			libxml_use_internal_errors( true );
			$document->loadHTML( '<?xml encoding="utf-8"?>' . $html );
			$path  = new DOMXPath( $document );
			$boxes = $path->query( '//input[@type="checkbox" and @name="' . Settings::TRUSTED_CALLERS . '[' . $row['uuid'] . '][]"]' );
			$found = [];
			foreach ( $boxes as $box ) {
				$found[ $box->getAttribute( 'value' ) ] = $box->hasAttribute( 'checked' );
				$t->contains( 'of scoped', $box->getAttribute( 'aria-label' ) );
			}
			$t->same( [ 'browser-connector:request' => true, 'artifact:write' => false, 'browser-session:create' => false ], $found, 'the page offers other scopes' );
			$t->true( str_contains( $document->textContent, $row['name'] ), 'the name is not shown' );
			$t->same( 0, $path->query( '//b' )->length, 'a name is not escaped' );
			// A granted password is always shown, regardless of the limit of the list.
			$t->same( [ $row['uuid'] ], array_column( ( new CallerGrants() )->passwords( 1, [ $row['uuid'] ] ), 'uuid' ) );
			$t->same( 2, count( ( new CallerGrants() )->passwords( 2, [ $row['uuid'] ] ) ) );
		} )
	);
	if ( is_multisite() ) {
		$t->test(
			'on multisite grants are network options, and a caller must be a member of the site',
			$clean( static function () use ( $t, $user, $password, $decide ): void {
				$one  = $user( 'scoped' );
				$site = get_user_by( 'login', 'siteadmin-callers' ) ?: get_user_by( 'id', wp_insert_user( [ 'user_login' => 'siteadmin-callers', 'user_pass' => wp_generate_password(), 'user_email' => 'sac@example.org', 'role' => 'administrator' ] ) );
				$uuid = $password( $one );
				update_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request' ] ] );
				$t->same( false, $decide( $one, $uuid )[0], 'an option of one site' );
				delete_option( Settings::TRUSTED_CALLERS );
				update_network_option( null, Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request' ] ] );
				$t->same( true, $decide( $one, $uuid )[0] );
				$t->same( [ true, false ], [ user_can( $site, 'manage_options' ), $decide( $site->ID, $password( $site->ID ) )[0] ], 'the administrator of one site' );
				$t->same( true, $decide( 1, null )[0], 'a network administrator' );
				$blog = (int) wp_insert_site(
					[
						'domain' => 'localhost',
						'path'   => '/callers-' . wp_rand() . '/',
					]
				);
				switch_to_blog( $blog );
				$t->same( [ false, 'caller-not-trusted' ], array_slice( $decide( $one, $uuid ), 0, 2 ), 'a site without the user as member' );
				add_user_to_blog( $blog, $one, 'subscriber' );
				$t->same( true, $decide( $one, $uuid )[0], 'positive control' );
				restore_current_blog();
				wp_delete_site( $blog );
			} )
		);
	}
};
