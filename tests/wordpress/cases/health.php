<?php
/**
 * Site Health with an extension: the level and the axes that are not enforced.
 */

declare(strict_types=1);

use WPCodebox\Host\ServedDirectories;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$result = static function (): array {
		$tests = apply_filters( 'site_status_tests', [ 'direct' => [] ] );
		$test  = $tests['async']['wp_codebox_isolation'];
		return call_user_func( $test['async_direct_test'] );
	};
	$t->test(
		'the isolation test of Site Health runs asynchronously',
		static function () use ( $t ): void {
			$tests = apply_filters( 'site_status_tests', [ 'direct' => [] ] );
			$t->same( [ 'wp_codebox_extension', 'wp_codebox_state', 'wp_codebox_level', 'wp_codebox_browser' ], array_keys( $tests['direct'] ) );
			$t->same( 'codebox-isolation', $tests['async']['wp_codebox_isolation']['test'] );
			$t->true( has_action( 'wp_ajax_health-check-codebox-isolation' ), 'no handler is registered for the request of the browser' );
		}
	);
	$t->test(
		'the isolation test shows the level and only the axes that are not enforced',
		static function () use ( $t, $result ): void {
			$test = $result();
			$t->same( [ 'good', 'wp_codebox_isolation' ], [ $test['status'], $test['test'] ] );
			$t->contains( 'Isolation level: full.', $test['description'] );
			$t->contains( 'Landlock ABI', $test['description'] );
			$t->true( ! str_contains( $test['description'], 'files: ' ), 'an enforced axis is listed' );
			if ( 'native' !== $t->phase ) {
				return;
			}
			// Without a control group no host enforces these two.
			$code = 'echo json_encode( call_user_func( apply_filters( "site_status_tests", [ "direct" => [] ] )["async"]["wp_codebox_isolation"]["async_direct_test"] ) );';
			[ , $out, $err ] = $t->wp( [ 'eval', $code ], [], [ 'php_flags' => array_merge( $t->php_flags, [ '-d', 'wp_codebox.cgroup=/nonexistent' ] ) ] );
			$shown = ( (array) json_decode( $out, true ) )['description'] ?? '';
			foreach ( [ 'memory: best-effort.', 'cpu: best-effort.' ] as $axis ) {
				$t->contains( $axis, $shown, $out . $err );
			}
			$t->true( ! str_contains( $shown, 'files: ' ), 'an enforced axis is listed' );
		}
	);
	$direct = static fn( string $name ): array => call_user_func( apply_filters( 'site_status_tests', [ 'direct' => [] ] )['direct'][ $name ]['test'] );
	$t->test(
		'Site Health shows the cached isolation level, unless it was measured on another kernel',
		static function () use ( $t, $direct, $result ): void {
			delete_site_transient( 'wp_codebox_isolation' );
			$t->same( 'recommended', $direct( 'wp_codebox_level' )['status'] );
			$result();
			$t->same( 'good', $direct( 'wp_codebox_level' )['status'] );
			$t->contains( 'Isolation level full', $direct( 'wp_codebox_level' )['description'] );
			$t->same( 'full', apply_filters( 'debug_information', [] )['wp-codebox']['fields']['level']['value'] );
			set_site_transient( 'wp_codebox_isolation', [ 'kernel' => '1.0' ] + get_site_transient( 'wp_codebox_isolation' ) );
			$t->same( 'recommended', $direct( 'wp_codebox_level' )['status'] );
			delete_site_transient( 'wp_codebox_isolation' );
		}
	);
	$t->test(
		'Site Health reports a state directory that the extension cannot use as critical',
		static function () use ( $t, $direct ): void {
			$t->same( 'good', $direct( 'wp_codebox_state' )['status'] );
			// The setting cannot change in this process, so a child process gets an unusable state directory.
			if ( 'native' !== $t->phase ) {
				return;
			}
			$flags  = array_map( static fn( string $flag ): string => str_starts_with( $flag, 'wp_codebox.state_dir=' ) ? 'wp_codebox.state_dir=' . getenv( 'TEST_WORK' ) . '/world' : $flag, $t->php_flags );
			$broken = getenv( 'TEST_WORK' ) . '/world';
			mkdir( $broken );
			chmod( $broken, 0777 );
			$code = 'echo json_encode( call_user_func( apply_filters( "site_status_tests", [ "direct" => [] ] )["direct"]["wp_codebox_state"]["test"] ) );';
			[ , $out, $err ] = $t->wp( [ 'eval', $code ], [], [ 'php_flags' => $flags ] );
			rmdir( $broken );
			$test = (array) json_decode( $out, true );
			$t->same( 'critical', $test['status'] ?? null, $out . $err );
			$t->contains( 'state directory', $test['description'] . $test['actions'] );
		}
	);
	$t->test(
		'a state directory that a web server serves or that other users can enter is refused',
		static function () use ( $t ): void {
			$t->true( null !== ServedDirectories::holding( WP_CONTENT_DIR ), 'a directory that is served' );
			$t->same( null, ServedDirectories::holding( (string) getenv( 'TEST_WORK' ) ), 'a directory that is not served' );
			// The name of the document root is one that sanitize_text_field() would alter; later WordPress is in a subdirectory of the site.
			$root = getenv( 'TEST_WORK' ) . '/web  %41';
			wp_mkdir_p( $root );
			$_SERVER['DOCUMENT_ROOT'] = $root;
			$t->same( realpath( $root ), ServedDirectories::holding( "$root/state" ), 'in the document root' );
			unset( $_SERVER['DOCUMENT_ROOT'] );
			$t->same( null, ServedDirectories::holding( "$root/state" ), 'positive control' );
			$home = static fn(): string => 'http://localhost';
			$own  = static fn(): string => 'http://localhost/' . basename( ABSPATH );
			$t->filtered( 'pre_option_home', $home, static fn() => $t->filtered( 'pre_option_siteurl', $own, static fn() => $t->same( realpath( dirname( ABSPATH ) ), ServedDirectories::holding( "$root/state" ), 'where the address of the site begins' ) ) );
			$GLOBALS['wp_theme_directories'][] = $root;
			$t->same( realpath( $root ), ServedDirectories::holding( "$root/state" ), 'in a directory of themes' );
			array_pop( $GLOBALS['wp_theme_directories'] );
			if ( 'native' !== $t->phase ) {
				return;
			}
			$ask  = static function ( string $state, string $plugin = 'none-such' ) use ( $t ): array {
				$flags = array_map( static fn( string $flag ): string => str_starts_with( $flag, 'wp_codebox.state_dir=' ) ? "wp_codebox.state_dir=$state" : $flag, $t->php_flags );
				$code  = '$tests = apply_filters( "site_status_tests", [ "direct" => [] ] )["direct"]; $task = WP_Codebox_API::run_agent_task( [ "goal" => "x", "plugin" => "' . $plugin . '", "agent_command" => "true" ] ); echo json_encode( [ call_user_func( $tests["wp_codebox_state"]["test"] )["status"], is_wp_error( $task ) ? [ $task->get_error_code(), $task->get_error_data()["status"] ] : "started" ] );';
				[ , $out, $err ]  = $t->wp( [ 'eval', $code, '--user=admin' ], [], [ 'php_flags' => $flags ] );
				[ $exit, $rows ] = $t->wp( [ 'codebox', 'doctor', '--format=json' ], [], [ 'php_flags' => $flags ] );
				$checks           = array_column( (array) ( json_decode( $rows, true )['checks'] ?? [] ), 'status', 'id' );
				return [ json_decode( $out, true ) ?? $out . $err, $exit, $checks['state-dir'] ?? null ];
			};
			$made = static function ( string $state, int $mode ): string {
				mkdir( $state );
				chmod( $state, $mode );
				chown( $state, fileowner( (string) ini_get( 'wp_codebox.state_dir' ) ) );
				return $state;
			};
			$bad  = [ 'critical', [ 'wp_codebox_state_dir_invalid', 503 ] ];
			foreach ( [ ABSPATH . 'state', WP_CONTENT_DIR . '/state' ] as $state ) {
				$made( $state, 0700 );
				$t->same( [ $bad, 1, 'error' ], $ask( $state ), $state );
				$t->same( [], array_diff( (array) scandir( $state ), [ '.', '..' ] ), 'a file was written to the refused directory' );
				rmdir( $state );
			}
			$state = $made( getenv( 'TEST_WORK' ) . '/other-state', 0755 );
			foreach ( [ 0755, 0750 ] as $mode ) {
				chmod( $state, $mode );
				// The mode of the state directory is checked after the plugin, so the task names an installed plugin.
				$t->same( [ $bad, 1, 'error' ], $ask( $state, 'sample' ), decoct( $mode ) );
			}
			chmod( $state, 0700 );
			[ $seen, , $row ] = $ask( $state );
			$t->same( [ 'good', 'ok' ], [ $seen[0] ?? $seen, $row ], 'positive control' );
			$t->true( 'wp_codebox_state_dir_invalid' !== $seen[1][0], 'positive control' );
		}
	);
	$t->test(
		'debug information marks paths as private and contains no secret and no command line',
		static function () use ( $t ): void {
			update_site_option( 'wp_codebox_agents', [ 'a' => [ 'command' => 'php hunter2.php', 'success_codes' => [ 0 ] ] ] );
			update_site_option( 'wp_codebox_trusted_keys', [ str_repeat( 'fade', 16 ) ] );
			$fields = apply_filters( 'debug_information', [] )['wp-codebox']['fields'];
			delete_site_option( 'wp_codebox_agents' );
			delete_site_option( 'wp_codebox_trusted_keys' );
			$t->true( 1 !== preg_match( '/hunter2|fadefade/', (string) json_encode( $fields ) ), 'a setting is shown' );
			$t->same( [ '1', '1', false ], [ $fields['agents']['value'], $fields['trusted_keys']['value'], $fields['agents']['private'] ] );
			$seen = 0;
			foreach ( $fields as $name => $field ) {
				if ( str_contains( (string) $field['value'], '/' ) ) {
					++$seen;
					$t->same( true, $field['private'], $name );
				}
			}
			$t->true( $seen > 0, 'the fields contain no path' );
			$t->same( \WPCodebox\VERSION, $fields['extension']['value'] );
			$t->same( 1, preg_match( '/^[0-9]+$/', (string) $fields['bundles']['value'] ) );
		}
	);
	if ( '1' !== getenv( 'WP_CODEBOX_FAKE' ) ) {
		return;
	}
	foreach ( [
		'reduced' => [ 'recommended', 'files: not-enforced.' ],
		'none'    => [ 'critical', 'files: not-enforced.' ],
		'unknown' => [ 'critical', 'The runner is gone.' ],
	] as $level => [ $status, $text ] ) {
		$t->test(
			"isolation level $level is shown with the status $status",
			static function () use ( $t, $result, $level, $status, $text ): void {
				putenv( "WP_CODEBOX_FAKE_LEVEL=$level" );
				$test = $result();
				putenv( 'WP_CODEBOX_FAKE_LEVEL' );
				$t->same( $status, $test['status'] );
				$t->contains( $text, $test['description'] );
				$t->true( ! str_contains( $test['description'], '<b>' ), 'evidence is not escaped' );
			}
		);
	}
	$t->test(
		'Site Health tests the default model only if there is one, and shows no key',
		static function () use ( $t ): void {
			$has = static fn(): bool => isset( apply_filters( 'site_status_tests', [] )['direct']['wp_codebox_model'] );
			$t->same( false, $has() );
			update_site_option( 'wp_codebox_providers', [ 'health' => [ 'api' => 'openai-chat', 'base_url' => 'https://models.example', 'key_env' => 'HEALTH_API_KEY' ] ] );
			update_site_option( 'wp_codebox_default_provider', 'health' );
			update_site_option( 'wp_codebox_default_model', 'm' );
			$t->same( true, $has() );
			$ask = static fn(): array => apply_filters( 'site_status_tests', [] )['direct']['wp_codebox_model']['test']();
			$t->same( 'recommended', $ask()['status'] );
			putenv( 'HEALTH_API_KEY=sk-health-VALUE' );
			$good   = $ask();
			$fields = apply_filters( 'debug_information', [] )['wp-codebox']['fields'];
			$t->same( 'good', $good['status'] );
			$t->contains( 'health available env', $fields['providers']['value'] );
			$t->same( 'health m', $fields['model']['value'] );
			$t->true( ! str_contains( (string) json_encode( [ $good, $fields ] ), 'sk-health-VALUE' ), 'the value is shown' );
			foreach ( [ 'providers', 'default_provider', 'default_model' ] as $option ) {
				delete_site_option( 'wp_codebox_' . $option );
			}
		}
	);
};
