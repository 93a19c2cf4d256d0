<?php
/**
 * Direct apply and roll back: settings, networks, file ownership, and the answers of a site that serves no requests.
 */

declare(strict_types=1);

use WPCodebox\Admin\RecoveryNotes;
use WPCodebox\DirectApply\RecoveryFile;
use WPCodebox\DirectApply\RecoveryLink;
use WPCodebox\DirectApply\SensitiveFiles;
use WPCodebox\DirectApply\UpdateLocks;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$file  = '/wordpress/wp-content/plugins/sample/sample.php';
	$apply = static fn( array $made, array $more = [] ): mixed => $t->ability( 'apply-approved-artifact', $more + [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] );
	// Calls the body with direct apply and without the example host plugin.
	$direct = static function ( callable $body ) use ( $t ): void {
		update_site_option( Settings::DIRECT_APPLY, true );
		try {
			$t->hosts(
				[],
				static function () use ( $body ): void {
					$settings = new Settings();
					$code     = new WPCodebox\Host\InstalledCode();
					$site     = new WPCodebox\Host\Site( $code );
					( new WPCodebox\DirectApply\DirectApply( $settings, $site, new SensitiveFiles(), new WPCodebox\DirectApply\HealthCheck( $settings ), new RecoveryLink( $site ) ) )->register();
					$body();
				}
			);
		} finally {
			delete_site_option( Settings::DIRECT_APPLY );
		}
	};

	$t->test(
		'direct apply: a site that answers no requests gets the change with the health unknown, and takes it back',
		static function () use ( $t, $direct, $apply, $file ): void {
			$made   = $t->made();
			$before = (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' );
			$direct(
				static function () use ( $t, $apply, $made, $before, $file ): void {
					$result = $t->ok( $apply( $made ) )['result'];
					$t->same( [ 'codebox-direct', 'applied', [ $file ], 'unknown' ], [ $result['adapter'], $result['status'], $result['applied_files'], $result['health']['status'] ] );
					$t->true( str_contains( $result['message'], 'it is not known whether they still work' ), $result['message'] );
					$t->true( $before !== file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ), 'nothing was written' );
					$t->error( 'wp_codebox_approved_files_invalid', 400, $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run']['run_id'], 'files' => [ 'other.php' ] ] ) );
					$back = $t->ok( $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run']['run_id'], 'files' => [ 'sample.php' ] ] ) );
					$t->same( [ 'restored', [ 'sample.php' ], $before ], [ $back['result']['status'], $back['result']['files'], file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ) ] );
				}
			);
		}
	);
	$t->test(
		'direct apply: the result is told in the language of the user and recorded in English',
		static function () use ( $t, $direct, $apply ): void {
			$made   = $t->made();
			$german = static fn( string $shown, string $english ): string => '' === $english ? $shown : "Deutsch: $english";
			$direct(
				static function () use ( $t, $apply, $made, $german ): void {
					add_filter( 'gettext_codebox', $german, 10, 2 );
					add_filter( 'ngettext_codebox', $german, 10, 2 );
					try {
						$applied = $t->ok( $apply( $made ) )['result'];
						$back    = $t->ok( $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) )['result'];
					} finally {
						remove_filter( 'gettext_codebox', $german );
						remove_filter( 'ngettext_codebox', $german );
					}
					$t->contains( 'Deutsch: 1 file was written. Deutsch: The site did not answer', $applied['message'] );
					$t->same( 'Deutsch: 1 file was restored to its state before the change.', $back['message'] );
					$records = $t->ok( $t->ability( 'list-audit-records', [ 'per_page' => 4, 'full' => true ] ) )['records'];
					$results = array_column( array_column( $records, 'result' ), 'message' );
					$t->same( [ '1 file was written. The site did not answer when this host requested its pages, so it is not known whether they still work.', '1 file was restored to its state before the change.' ], $results );
					$t->true( ! str_contains( (string) wp_json_encode( $records ), 'Deutsch' ), 'a translation is in the audit log' );
				}
			);
		}
	);
	$t->test(
		'direct apply: WordPress that is being updated refuses a change, and its lock stays',
		static function () use ( $t, $direct, $apply ): void {
			require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
			$made = $t->made();
			$direct(
				static function () use ( $t, $apply, $made ): void {
					$t->true( WP_Upgrader::create_lock( 'auto_updater', 600 ), 'no lock' );
					try {
						$t->error( 'wp_codebox_busy', 429, $apply( $made ) );
						$t->true( false !== get_option( 'auto_updater.lock' ) && false === get_option( 'core_updater.lock' ), 'the locks are not as before' );
					} finally {
						WP_Upgrader::release_lock( 'auto_updater' );
					}
					$t->ok( $apply( $made ) );
					$t->ok( $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
				}
			);
		}
	);
	$t->test(
		'direct apply: update locks are those of the main site, have an owner, and are ignored after a quarter of an hour',
		static function () use ( $t ): void {
			require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
			$locks = static fn(): array => [ get_option( 'core_updater.lock' ), get_option( 'auto_updater.lock' ) ];
			$other = is_multisite() ? (int) wp_insert_site( [ 'domain' => 'localhost', 'path' => '/locks/', 'network_id' => 1 ] ) : 0;
			$on    = static function ( callable $body ) use ( $other ): mixed {
				$other > 0 && switch_to_blog( $other );
				try {
					return $body();
				} finally {
					$other > 0 && restore_current_blog();
				}
			};
			$owner = UpdateLocks::owner();
			try {
				$t->true( WP_Upgrader::create_lock( 'auto_updater', 600 ), 'control: no lock' );
				$t->same( false, $on( static fn(): bool => UpdateLocks::take( $owner ) ), 'taken during an update' );
				$t->same( [ false, true ], array_map( static fn( mixed $lock ): bool => false !== $lock, $locks() ) );
				update_option( 'auto_updater.lock', time() - 901 );
				$t->same( true, $on( static fn(): bool => UpdateLocks::take( $owner ) ), 'an old lock counts' );
				wp_cache_flush();
				$t->same( [ $owner, $owner ], $locks() );
				$t->same( false, WP_Upgrader::create_lock( 'core_updater', 600 ), 'an update may run' );
				$on( static fn() => UpdateLocks::release( UpdateLocks::owner() ) );
				$t->same( [ $owner, $owner ], $locks(), 'another owner released them' );
				$on( static fn() => UpdateLocks::release( $owner ) );
				$t->same( [ false, false ], $locks() );
			} finally {
				delete_option( 'core_updater.lock' );
				delete_option( 'auto_updater.lock' );
				$other > 0 && wp_delete_site( $other );
			}
		}
	);
	$t->test(
		'direct apply: must-use plugins, drop-ins and files that the extension lists to confirm are sensitive, other files are not',
		static function () use ( $t ): void {
			$files  = new SensitiveFiles();
			$among  = static fn( string $directory, string $name, array $risks = [] ): bool => [] !== $files->among(
				[
					'changed_files' => [ [ 'path' => 'p', 'mountTarget' => 'm', 'relativePath' => $name ] ],
					'targets'       => [ 'm' => $directory ],
					'risks'         => $risks,
				]
			);
			$plugin = WP_PLUGIN_DIR . '/sample';
			foreach ( [ [ $plugin, 'htaccess', false ], [ $plugin, 'db.php', false ], [ (string) realpath( WPMU_PLUGIN_DIR ), 'x/y.php', true ], [ (string) realpath( WP_CONTENT_DIR ), 'object-cache.php', true ], [ (string) realpath( WP_CONTENT_DIR ), 'other.php', false ] ] as [ $directory, $name, $expected ] ) {
				$t->same( $expected, $among( $directory, $name ), "$directory/$name" );
			}
			$listed = static fn( string $path, bool $confirm ): array => [ [ 'path' => $path, 'flag' => 'f', 'sentence' => 's', 'confirm' => $confirm ] ];
			$t->same( [ true, false, false ], [ $among( $plugin, 'a', $listed( 'p', true ) ), $among( $plugin, 'a', $listed( 'p', false ) ), $among( $plugin, 'a', $listed( 'q', true ) ) ] );
		}
	);
	$t->test(
		'direct apply: the file of the recovery link is there while direct apply is on, and is replaced when it is old',
		static function () use ( $t ): void {
			$file    = WPMU_PLUGIN_DIR . '/0-codebox-recovery.php';
			$shipped = (string) file_get_contents( WP_PLUGIN_DIR . '/wp-codebox/must-use/0-codebox-recovery.php' );
			$there   = static function () use ( $file ): bool {
				clearstatcache();
				return is_file( $file );
			};
			$t->same( false, $there() );
			update_site_option( Settings::DIRECT_APPLY, true );
			$t->same( $shipped, (string) file_get_contents( $file ) );
			$t->same( basename( $file ), basename( array_values( array_diff( wp_get_mu_plugins(), array_map( static fn( string $name ): string => WPMU_PLUGIN_DIR . "/$name", RecoveryFile::loaded_before() ) ) )[0] ), 'another file is loaded first' );
			foreach ( [ 'follow', 'write' ] as $way ) {
				file_put_contents( $file, '<?php // Of an older version.' );
				RecoveryFile::$way();
				$t->same( $shipped, (string) file_get_contents( $file ), $way );
			}
			$t->same( 1, count( (array) glob( "$file*" ) ), 'a temporary file is left' );
			update_site_option( Settings::DIRECT_APPLY, false );
			$t->same( false, $there() );
			update_site_option( Settings::DIRECT_APPLY, true );
			delete_site_option( Settings::DIRECT_APPLY );
			$t->same( false, $there() );
			update_site_option( Settings::DIRECT_APPLY, true );
			do_action( 'deactivate_' . plugin_basename( WP_PLUGIN_DIR . '/wp-codebox/wp-codebox.php' ), false );
			$t->same( is_multisite(), $there(), 'deactivated on one site' );
			RecoveryFile::write();
			do_action( 'deactivate_' . plugin_basename( WP_PLUGIN_DIR . '/wp-codebox/wp-codebox.php' ), true );
			$t->same( false, $there() );
			delete_site_option( Settings::DIRECT_APPLY );
			if ( is_multisite() ) {
				global $wpdb;
				$wpdb->insert( $wpdb->site, [ 'id' => 2, 'domain' => 'second.test', 'path' => '/' ] );
				clean_network_cache( 2 );
				try {
					update_network_option( 2, Settings::DIRECT_APPLY, true );
					$t->same( true, $there(), 'turned on for another network' );
					update_site_option( Settings::DIRECT_APPLY, true );
					delete_site_option( Settings::DIRECT_APPLY );
					$t->same( true, $there(), 'turned off for one of two networks' );
					delete_network_option( 2, Settings::DIRECT_APPLY );
					$t->same( false, $there(), 'turned off for both networks' );
				} finally {
					delete_network_option( 2, Settings::DIRECT_APPLY );
					$wpdb->delete( $wpdb->site, [ 'id' => 2 ] );
					clean_network_cache( 2 );
				}
			}
		}
	);
	$t->test(
		'direct apply: it cannot be turned on, and applies nothing, while the file of the recovery link cannot be written',
		static function () use ( $t, $direct, $apply ): void {
			$file = WPMU_PLUGIN_DIR . '/0-codebox-recovery.php';
			$on   = static function (): bool {
				update_site_option( Settings::DIRECT_APPLY, true );
				return ( new Settings() )->direct_apply();
			};
			$made = $t->made();
			// A directory with the name of the file: root may write every directory.
			mkdir( $file );
			try {
				$t->same( false, $on() );
				$errors = get_settings_errors( Settings::DIRECT_APPLY );
				$t->contains( "The file $file cannot be written", end( $errors )['message'] ?? '' );
				$t->same( [], RecoveryNotes::all( new Settings() ), 'a note while direct apply is off' );
			} finally {
				rmdir( $file );
			}
			add_filter( 'file_mod_allowed', '__return_false' );
			$t->same( false, $on(), 'file changes are not allowed' );
			remove_filter( 'file_mod_allowed', '__return_false' );
			$t->same( true, $on(), 'control' );
			// This site cannot send the mails of earlier cases.
			delete_option( RecoveryLink::UNSENT );
			$t->same( [], RecoveryNotes::all( new Settings() ) );
			$direct(
				static function () use ( $t, $apply, $made, $file ): void {
					unlink( $file );
					mkdir( $file );
					$t->error( 'wp_codebox_apply_failed', 507, $apply( $made ) );
					$t->contains( "The file $file cannot be written", RecoveryNotes::all( new Settings() )[0][0] );
					rmdir( $file );
					$t->ok( $apply( $made ) );
					$t->ok( $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
				}
			);
		}
	);
	$t->test(
		'direct apply: a must-use plugin that is loaded before the recovery link is named',
		static function () use ( $t ): void {
			$first = WPMU_PLUGIN_DIR . '/!first.php';
			update_site_option( Settings::DIRECT_APPLY, true );
			file_put_contents( $first, '<?php' );
			try {
				$t->contains( '!first.php', RecoveryNotes::all( new Settings() )[0][0] );
			} finally {
				unlink( $first );
				delete_site_option( Settings::DIRECT_APPLY );
			}
		}
	);
	$t->test(
		'direct apply: switches and pages of the settings are validated',
		static function () use ( $t ): void {
			foreach ( [ [ '1', true ], [ null, false ], [ 'off', false ] ] as [ $given, $stored ] ) {
				update_site_option( Settings::DIRECT_APPLY, $given );
				$t->same( $stored, ( new Settings() )->direct_apply(), (string) wp_json_encode( $given ) );
			}
			update_site_option( Settings::HEALTH_URLS, home_url( '/shop/' ) . "\n\n" . home_url( '/cart/' ) );
			$t->same( [ home_url( '/shop/' ), home_url( '/cart/' ) ], ( new Settings() )->health_urls() );
			update_site_option( Settings::HEALTH_URLS, 'https://elsewhere.test/' );
			$t->same( [ home_url( '/shop/' ), home_url( '/cart/' ) ], ( new Settings() )->health_urls(), 'a page of another host was stored' );
			delete_site_option( Settings::HEALTH_URLS );
			delete_site_option( Settings::DIRECT_APPLY );
		}
	);
};
