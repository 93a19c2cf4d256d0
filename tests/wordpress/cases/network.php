<?php
/**
 * Multisite: settings and capabilities belong to the network.
 */

declare(strict_types=1);

use WPCodebox\Admin\SettingsForm;
use WPCodebox\Admin\SettingsPage;
use WPCodebox\Capabilities;
use WPCodebox\ExtensionGate;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SettingChecks;
use WPCodebox\Host\SettingRules;
use WPCodebox\Host\Site;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	// Returns the administrator of one site, without network rights.
	$administrator = static fn(): WP_User => get_user_by( 'login', 'siteadmin' ) ?: new WP_User(
		wp_insert_user(
			[
				'user_login' => 'siteadmin',
				'user_pass'  => wp_generate_password(),
				'user_email' => 'siteadmin@example.org',
				'role'       => 'administrator',
			]
		)
	);

	$t->test(
		'on multisite a network administrator may run tasks, and the administrator of one site may not',
		static function () use ( $t, $administrator ): void {
			$t->same( true, is_multisite() );
			$one = $administrator()->ID;
			wp_set_current_user( $one );
			$t->same( [ true, false ], [ current_user_can( 'manage_options' ), wp_get_ability( 'wp-codebox/run-agent-task' )->check_permissions( [] ) ] );
			wp_set_current_user( 1 );
			$t->same( [ true, true ], [ is_super_admin(), wp_get_ability( 'wp-codebox/run-agent-task' )->check_permissions( [] ) ] );
		}
	);
	$t->test(
		'a site administrator who adds capabilities to a role of the site gains nothing',
		static function () use ( $t, $administrator ): void {
			$one  = $administrator()->ID;
			$can  = apply_filters( 'wp_codebox_pending_apply_artifact_handlers', [] )['wp_codebox_apply_back']['can_resolve'];
			$may  = static function () use ( $one, $can ): array {
				wp_set_current_user( 0 );
				wp_set_current_user( $one );
				$asked = array_map( static fn( string $name ): bool => wp_get_ability( "wp-codebox/$name" )->check_permissions( [] ), [ 'run-agent-task', 'list-artifacts', 'apply-approved-artifact' ] );
				return [ ...$asked, $can( [], 'accepted', $one ), current_user_can( SettingsPage::capability() ) ];
			};
			$none = array_fill( 0, 5, false );
			$all  = array_fill( 0, 5, true );
			$role = get_role( 'administrator' );
			$mine = [ 'manage_network_options', Capabilities::RUN, Capabilities::REVIEW, Capabilities::APPLY, Capabilities::SETTINGS ];
			array_map( [ $role, 'add_cap' ], $mine );
			try {
				$t->same( $none, $may() );
				$t->same( true, current_user_can( 'manage_network_options' ), 'the role has the added capability' );
				grant_super_admin( $one );
				$t->same( $all, $may(), 'a super admin' );
				revoke_super_admin( $one );
				$t->same( $none, $may(), 'after the super admin rights were revoked' );
				$map = static fn( array $caps, string $cap ): array => in_array( $cap, $mine, true ) ? [ $cap ] : $caps;
				add_filter( 'map_meta_cap', $map, 20, 2 );
				$t->same( $all, $may(), 'code of the network maps the capabilities to themselves' );
				remove_filter( 'map_meta_cap', $map, 20 );
			} finally {
				revoke_super_admin( $one );
				array_map( [ $role, 'remove_cap' ], $mine );
			}
			wp_set_current_user( 1 );
			$t->same( [ true, false, false ], [ $can( [], 'accepted', 1 ), $can( [], 'accepted', $one ), $can( [], 'accepted', 0 ) ], 'a super admin is logged in' );
			$t->same( [ true, false ], [ user_can( 1, Capabilities::RUN ), user_can( 0, Capabilities::RUN ) ], 'a visitor while a super admin is logged in' );
			$asked = [];
			$t->filtered(
				'wp_codebox_can_run_agent_task',
				static function ( bool $allowed, string $capability, int $user ) use ( &$asked ): bool {
					$asked[] = $user;
					return $allowed;
				},
				static fn(): array => [ $can( [], 'accepted', 0 ), $can( [], 'accepted', 1 ) ]
			);
			$t->same( [ 1 ], $asked, 'the filter is called for logged-in users only' );
		}
	);
	$t->test(
		'on multisite the settings are network options',
		static function () use ( $t ): void {
			update_network_option( null, 'wp_codebox_trusted_keys', [ str_repeat( '1', 64 ) ] );
			update_option( 'wp_codebox_trusted_keys', [ str_repeat( '2', 64 ) ] );
			$t->same( [ str_repeat( '1', 64 ) ], ( new Settings() )->trusted_keys() );
		}
	);
	$t->test(
		'only a network administrator with a valid nonce can save the network settings page',
		static function () use ( $t, $administrator ): void {
			require_once ABSPATH . 'wp-admin/includes/admin.php';
			$settings = new Settings();
			$gate     = new ExtensionGate( \WPCodebox\VERSION, ( require WP_PLUGIN_DIR . '/wp-codebox/abilities/manifest.php' )['contract_digest'] );
			$page     = new SettingsPage( new SettingsForm( $settings, $gate ), new SettingRules( new SettingChecks( $settings, $gate ) ) );
			$t->same( [ false, true ], [ has_action( 'admin_menu', [ $page, 'add_page' ] ), false !== has_action( 'network_admin_menu' ) ] );
			$t->same( Capabilities::SETTINGS, SettingsPage::capability() );
			$send = static function ( array $fields, string $nonce ) use ( $page ): string {
				global $wp_settings_errors;
				$wp_settings_errors = [];
				$_POST              = wp_slash( $fields );
				$_REQUEST           = [ '_wpnonce' => $nonce ];
				$stop               = static fn( mixed $to ) => throw new RuntimeException( is_string( $to ) ? $to : 'died' );
				add_filter( 'wp_redirect', $stop );
				add_filter( 'wp_die_handler', static fn(): Closure => $stop, 99 );
				try {
					$page->save();
				} catch ( RuntimeException $stopped ) {
					return $stopped->getMessage();
				} finally {
					remove_all_filters( 'wp_redirect' );
					remove_all_filters( 'wp_die_handler' );
					$_POST    = [];
					$_REQUEST = [];
				}
				return 'went on';
			};
			$fields = [
				'wp_codebox_agents'        => [ [ 'name' => 'net', 'command' => 'php "a b.php"', 'success_codes' => '' ] ],
				'wp_codebox_default_agent' => 'net',
				'wp_codebox_max_runs'      => '3',
				'wp_codebox_limits'        => [ 'ceilings' => [ 'memory_mib' => 'x' ] ],
			];
			wp_set_current_user( 1 );
			$nonce = wp_create_nonce( 'wp-codebox-settings' );
			foreach ( [ '', 'x', wp_create_nonce( 'wp-codebox-options' ) ] as $bad ) {
				$t->contains( 'expired', strip_tags( $send( $fields, $bad ) ) );
				$t->same( [], $settings->agents() );
			}
			$one = $administrator();
			wp_set_current_user( $one->ID );
			$t->contains( 'not allowed', $send( $fields, wp_create_nonce( 'wp-codebox-settings' ) ) );
			get_role( 'administrator' )->add_cap( 'manage_network_options' );
			wp_set_current_user( 0 );
			wp_set_current_user( $one->ID );
			$t->same( true, current_user_can( 'manage_network_options' ) );
			$t->contains( 'not allowed', $send( $fields, wp_create_nonce( 'wp-codebox-settings' ) ) );
			get_role( 'administrator' )->remove_cap( 'manage_network_options' );
			$t->same( [], $settings->agents() );
			wp_set_current_user( 1 );
			$t->contains( 'settings.php?page=wp-codebox-settings&settings-updated=true', $send( $fields, $nonce ) );
			$t->same( [ 'net' => [ 'command' => 'php "a b.php"', 'success_codes' => [ 0 ] ] ], get_network_option( null, 'wp_codebox_agents' ) );
			$t->same( [ 'net', 3, [] ], [ $settings->default_agent(), $settings->own_max_runs(), $settings->limit_ceilings() ] );
			$t->same( [ 'wp_codebox_limits' ], array_column( (array) get_transient( 'settings_errors' ), 'setting' ) );
			$t->same( 'nothing', get_option( 'wp_codebox_agents', 'nothing' ) );
			ob_start();
			set_current_screen( 'settings_page_wp-codebox-settings-network' );
			$page->prepare();
			$page->render();
			$t->contains( 'edit.php?action=wp-codebox-settings', (string) ob_get_clean() );
			$ours = array_filter( array_keys( rest_do_request( new WP_REST_Request( 'GET', '/wp/v2/settings' ) )->get_data() ), static fn( string $name ): bool => str_starts_with( $name, 'wp_codebox_' ) );
			$t->same( [], $ours );
			foreach ( [ 'wp_codebox_agents', 'wp_codebox_default_agent', 'wp_codebox_max_runs' ] as $option ) {
				delete_network_option( null, $option );
			}
		}
	);
	$t->test(
		'each site of a network has its own partition of the state directory',
		static function () use ( $t ): void {
			$site   = new Site( new InstalledCode() );
			$first  = $site->id();
			$second = wp_insert_site(
				[
					'domain' => 'localhost',
					'path'   => '/second/',
				]
			);
			switch_to_blog( (int) $second );
			$other = $site->id();
			restore_current_blog();
			$t->true( $first !== $other && str_starts_with( $other, 'site-' . $second . '-' ), "$first and $other" );
			$t->same( $first, $site->id() );
		}
	);
	$t->test(
		'one site cannot see bundles, runs or audit records of another',
		static function () use ( $t ): void {
			wp_set_current_user( 1 );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/network-agent.php' );
			$second = get_sites( [ 'path' => '/second/' ] )[0]->blog_id;
			$task   = [
				'goal'          => 'Partition',
				'plugin'        => 'sample',
				'agent_command' => 'php network-agent.php nothing',
			];
			$first  = $t->ok( $t->ability( 'run-agent-task', $task ) );
			switch_to_blog( (int) $second );
			$t->same( 0, $t->ok( $t->ability( 'list-artifacts' ) )['total'] );
			foreach ( [ 'get-artifact', 'inspect-artifact', 'discard-artifact', 'get-artifact-diff' ] as $ability ) {
				foreach ( [ $first['artifact_id'], $first['run']['run_id'] ] as $reference ) {
					$t->error( 'wp_codebox_artifact_not_found', 404, WP_Codebox_API::execute_ability( $ability, [ 'artifact_id' => $reference ] ) );
				}
			}
			if ( class_exists( 'WPCodebox\Native\Runs', false ) ) {
				$t->same( 0, $t->ok( WP_Codebox_API::list_runs() )['total'] );
				$t->error( 'wp_codebox_run_not_found', 404, WP_Codebox_API::get_run( [ 'run_id' => $first['run']['run_id'] ] ) );
			}
			$log   = count( $t->ok( WP_Codebox_API::list_audit_records() )['records'] );
			$other = $t->ok( $t->ability( 'run-agent-task', $task ) );
			$t->same( [ 1, $log ], [ $t->ok( $t->ability( 'list-artifacts' ) )['total'], count( $t->ok( WP_Codebox_API::list_audit_records() )['records'] ) ] );
			$t->true( dirname( $first['artifacts'] ) !== dirname( $other['artifacts'] ), 'both sites use one directory' );
			$t->same( true, $t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $other['run']['run_id'] ] ) )['discarded'] );
			restore_current_blog();
			// Positive control: the first site has its bundle, and no audit record of the other site.
			$t->same( $first['artifact_id'], $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $first['run']['run_id'] ] ) )['artifact']['artifact_id'] );
			$t->true( ! str_contains( (string) json_encode( WP_Codebox_API::list_audit_records() ), $other['run']['run_id'] ), 'a record of the other site' );
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'list', '--format=count', '--url=http://localhost/second/' ] );
			$t->same( [ 0, '0' ], [ $code, trim( $out ) ] );
			[ $code, $out ] = $t->wp( [ 'codebox', 'artifacts', 'list', '--format=count', '--url=http://localhost/' ] );
			$t->true( 0 === $code && (int) $out > 0, $out );
			unlink( WP_PLUGIN_DIR . '/sample/network-agent.php' );
		}
	);
	$t->test(
		'a task runs on multisite',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/network-agent.php' );
			$run = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php network-agent.php nothing' ] ) );
			$t->same( 'no_op', $run['run']['outcome'] );
		}
	);
	$t->test(
		'providers are settings of the network, and a connector key belongs to one site',
		static function () use ( $t ): void {
			if ( 'network' !== $t->phase ) {
				$t->same( true, is_multisite() );
				return;
			}
			$log = getenv( 'TEST_WORK' ) . '/request.json';
			putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
			$t->as( 'administrator' );
			$second = (int) get_sites( [ 'path' => '/second/' ] )[0]->blog_id;
			$task   = [ 'goal' => 'Fix it', 'plugin' => 'sample' ];
			update_site_option( 'wp_codebox_default_provider', 'openai' );
			update_site_option( 'wp_codebox_default_model', 'm' );
			update_option( 'connectors_ai_openai_api_key', 'sk-network-VALUE' );
			$run = $t->ok( $t->ability( 'run-agent-task', $task ) );
			$t->same( [ 'openai', 'database', 'sk-network-VALUE' ], [ $run['run_metadata']['provider'], $run['run_metadata']['credential']['source'], json_decode( (string) file_get_contents( $log ), true )['secrets'][0]['value'] ] );
			unlink( $log );
			switch_to_blog( $second );
			$t->error( 'wp_codebox_provider_credentials_unavailable', 403, $t->ability( 'run-agent-task', $task ) );
			$t->same( false, is_file( $log ) );
			restore_current_blog();
			delete_option( 'connectors_ai_openai_api_key' );
			delete_site_option( 'wp_codebox_default_provider' );
			delete_site_option( 'wp_codebox_default_model' );
		}
	);
	$t->test(
		'uninstalling deletes all data of the plugin from every site and the network, and nothing else',
		static function () use ( $t ): void {
			global $wpdb;
			$second = (int) get_sites( [ 'path' => '/second/' ] )[0]->blog_id;
			foreach ( [ 1, $second ] as $blog ) {
				switch_to_blog( $blog );
				update_option( 'wp_codebox_left', 'x' );
				update_option( 'wp_codeboxer', 'not ours' );
				update_option( 'other_wp_codebox_x', 'not ours' );
				set_transient( 'wp_codebox_t', 'x', 60 );
				restore_current_blog();
			}
			update_network_option( null, 'wp_codebox_limits', [ 'ceilings' => [ 'processes' => 64 ] ] );
			update_network_option( null, 'wp_codeboxer', 'not ours' );
			set_site_transient( 'wp_codebox_isolation', [ 'x' ], 60 );
			update_user_meta( 1, 'wp_codebox_columns', 'x' );
			update_user_meta( 1, 'wp_codeboxer', 'not ours' );
			defined( 'WP_UNINSTALL_PLUGIN' ) || define( 'WP_UNINSTALL_PLUGIN', 'wp-codebox/wp-codebox.php' );
			require WP_PLUGIN_DIR . '/wp-codebox/uninstall.php';
			foreach ( [ 1, $second ] as $blog ) {
				switch_to_blog( $blog );
				$t->same( [ false, false, 'not ours', 'not ours' ], [ get_option( 'wp_codebox_left' ), get_transient( 'wp_codebox_t' ), get_option( 'wp_codeboxer' ), get_option( 'other_wp_codebox_x' ) ] );
				$t->same( [], $wpdb->get_col( "SELECT option_name FROM $wpdb->options WHERE option_name LIKE '%wp\\_codebox\\_%' AND option_name NOT LIKE 'other%'" ) );
				restore_current_blog();
			}
			$t->same( [ false, 'not ours', false ], [ get_network_option( null, 'wp_codebox_limits', false ), get_network_option( null, 'wp_codeboxer' ), get_site_transient( 'wp_codebox_isolation' ) ] );
			$t->same( [ '', 'not ours' ], [ get_user_meta( 1, 'wp_codebox_columns', true ), get_user_meta( 1, 'wp_codeboxer', true ) ] );
			$t->same( [], $wpdb->get_col( "SELECT meta_key FROM $wpdb->sitemeta WHERE meta_key LIKE '%wp\\_codebox\\_%'" ) );
		}
	);
};
