<?php
/**
 * Multisite: settings and capabilities belong to the network.
 */

declare(strict_types=1);

use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$t->test(
		'a network administrator may, the administrator of one site may not',
		static function () use ( $t ): void {
			$t->same( true, is_multisite() );
			$one = wp_insert_user(
				[
					'user_login' => 'siteadmin',
					'user_pass'  => wp_generate_password(),
					'user_email' => 'siteadmin@example.org',
					'role'       => 'administrator',
				]
			);
			wp_set_current_user( $one );
			$t->same( [ true, false ], [ current_user_can( 'manage_options' ), wp_get_ability( 'wp-codebox/run-agent-task' )->check_permissions( [] ) ] );
			wp_set_current_user( 1 );
			$t->same( [ true, true ], [ is_super_admin(), wp_get_ability( 'wp-codebox/run-agent-task' )->check_permissions( [] ) ] );
		}
	);
	$t->test(
		'settings are network options',
		static function () use ( $t ): void {
			update_network_option( null, 'wp_codebox_trusted_keys', [ 'network-key' ] );
			update_option( 'wp_codebox_trusted_keys', [ 'site-key' ] );
			$t->same( [ 'network-key' ], ( new Settings() )->trusted_keys() );
		}
	);
	$t->test(
		'each site has its own partition',
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
		'a task runs',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
			$run = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php agent.php nothing' ] ) );
			$t->same( 'no_op', $run['outcome'] );
		}
	);
};
