<?php
/**
 * Share of one requester: settings, WP-CLI and code without a user. Load of several users over HTTP: tests/fpm/test_shares.py.
 */

declare(strict_types=1);

use WPCodebox\Settings;
use WPCodebox\ShareSettings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$task  = static fn( string $what ): array => [
		'goal'          => 'x',
		'plugin'        => 'sample',
		'wait'          => false,
		'agent_command' => 'php agent.php ' . $what,
	];
	// Starts runs as the current user until one is refused; returns their ids and the refusal.
	$fill  = static function () use ( $t, $task ): array {
		$runs = [];
		while ( ! is_wp_error( $answer = \WP_Codebox_API::run_agent_task( $task( 'sleep' ) ) ) ) {
			$runs[] = $answer['run_id'];
		}
		return [ $runs, $answer ];
	};
	$end   = static function ( array $runs ) use ( $t ): void {
		$t->as( 'administrator' );
		foreach ( $runs as $run ) {
			$t->ok( $t->ability( 'cancel-run', [ 'run_id' => $run ] ) );
		}
		$t->idle();
	};
	$fresh = static function () use ( $t ): void {
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
		update_site_option( Settings::MAX_RUNS, 5 );
	};
	$clear = static function (): void {
		foreach ( [ Settings::MAX_RUNS, Settings::LIMITS, ShareSettings::USER_MAX_RUNS ] as $option ) {
			delete_site_option( $option );
		}
	};

	$t->test(
		'share: half of the runs of the site by default, the number of the settings otherwise, all for who may change them',
		static function () use ( $t, $fill, $end, $fresh, $clear ): void {
			$fresh();
			foreach ( [ [ 'editor', 0, 2 ], [ 'editor', 1, 1 ], [ 'editor', 4, 4 ], [ 'administrator', 1, 5 ] ] as [ $role, $own, $most ] ) {
				update_site_option( ShareSettings::USER_MAX_RUNS, $own );
				$t->as( $role );
				[ $runs, $refused ] = $fill();
				$end( $runs );
				$t->same( $most, count( $runs ), "$role with $own" );
				$t->error( 'wp_codebox_busy', 429, $refused );
				$t->contains( 5 === $most ? 'limit is 5' : "has $most active runs", $refused->get_error_message() );
			}
			$clear();
		}
	);
	$t->test(
		'share: code without a user is one requester, and a full share does not stop WP-CLI or another user',
		static function () use ( $t, $fill, $end, $fresh, $clear, $task ): void {
			$fresh();
			wp_set_current_user( 0 );
			[ $runs, $refused ] = $fill();
			$t->same( 2, count( $runs ) );
			$t->contains( 'code that runs without a user', $refused->get_error_message() );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--agent-command=php agent.php sleep', '--detach', '--format=json' ] );
			$t->same( 0, $code, $err );
			$runs[] = json_decode( $out, true )['run_id'];
			$t->as( 'editor' );
			$runs[] = $t->ok( \WP_Codebox_API::run_agent_task( $task( 'sleep' ) ) )['run_id'];
			$end( $runs );
			$clear();
		}
	);
	$t->test(
		'share: a setting above what the operator allows is refused, and a ceiling raises what a task may ask for',
		static function () use ( $t, $end, $fresh, $clear, $task ): void {
			global $wp_settings_errors;
			require_once ABSPATH . 'wp-admin/includes/template.php';
			$fresh();
			$t->as( 'administrator' );
			$gib   = 1 << 30;
			$large = [ 'limits' => [ 'memory_bytes' => 3 * $gib ] ] + $task( 'sleep' );
			$t->error( 'wp_codebox_limit_invalid', 400, $t->ability( 'run-agent-task', $large ) );
			foreach ( [ [ Settings::LIMITS, [ 'ceilings' => [ 'memory_bytes' => 17 * $gib ] ] ], [ ShareSettings::USER_MAX_RUNS, 257 ] ] as [ $option, $value ] ) {
				$wp_settings_errors = [];
				update_site_option( $option, $value );
				$t->same( 1, count( get_settings_errors( $option ) ), $option );
				$t->true( $value !== get_site_option( $option ), "$option is stored" );
			}
			update_site_option( Settings::LIMITS, [ 'ceilings' => [ 'memory_bytes' => 3 * $gib ] ] );
			$end( [ $t->ok( $t->ability( 'run-agent-task', $large ) )['run_id'] ] );
			$t->error( 'wp_codebox_limit_invalid', 400, $t->ability( 'run-agent-task', [ 'limits' => [ 'memory_bytes' => 3 * $gib + 1 ] ] + $large ) );
			$clear();
		}
	);
};
