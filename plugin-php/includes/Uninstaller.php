<?php
/**
 * Removes the plugin's data from WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use Throwable;
use WPCodebox\Browser\EngineFiles;
use WPCodebox\Browser\PrivateDirectory;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\RuntimeFiles;
use WPCodebox\Browser\RuntimeInstall;
use WPCodebox\DirectApply\RecoveryFile;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Changes;

defined( 'ABSPATH' ) || exit;

/**
 * Finds the plugin's data by its name prefix, so no item is missed, and deletes it through WordPress's
 * functions, which also update caches. Of the state directory it deletes only the old contents of the files that
 * direct apply changed, and only when the setting says so; a roll back is then impossible.
 */
final class Uninstaller {

	private const PREFIXES = [ 'wp_codebox_', '_transient_wp_codebox_', '_transient_timeout_wp_codebox_', '_site_transient_wp_codebox_', '_site_transient_timeout_wp_codebox_' ];

	/** Removes all data of the plugin. */
	public function run(): void {
		global $wpdb;
		// A persistent object cache stores transients outside the database, where the query does not find
		// them.
		delete_site_transient( 'wp_codebox_isolation' );
		RecoveryFile::remove();
		( new RuntimeInstall( new RuntimeFiles( new EngineFiles( dirname( __DIR__ ) . '/wp-codebox.php' ) ) ) )->remove();
		$forget = (bool) get_site_option( Settings::FORGET_CHANGES, false ) && extension_loaded( 'wp_codebox' );
		if ( is_multisite() ) {
			$sites = get_sites(
				[
					'fields'  => 'ids',
					'number'  => 0,
					'network' => 0,
				]
			);
			foreach ( $sites as $site ) {
				switch_to_blog( (int) $site );
				$forget && $this->forget_changes();
				$this->remove_options();
				restore_current_blog();
			}
			foreach ( $this->found( $wpdb->sitemeta, 'meta_key', 'site_id' ) as $row ) {
				delete_network_option( (int) $row->owner, $row->name );
			}
		} else {
			$forget && $this->forget_changes();
			$this->remove_options();
		}
		foreach ( $this->found( $wpdb->usermeta, 'meta_key' ) as $row ) {
			delete_metadata( 'user', 0, $row->name, '', true );
		}
	}

	/** Deletes the old contents of the files that direct apply changed on the current site. */
	private function forget_changes(): void {
		try {
			Changes::forget( ( new Site( new InstalledCode() ) )->id() );
		} catch ( Throwable $thrown ) {
			// Called only to write the server's log: uninstalling goes on.
			Failure::from( $thrown );
		}
	}

	/** Removes the options of the current site, and the archives that browser sandboxes downloaded. */
	private function remove_options(): void {
		global $wpdb;
		$site = new Site( new InstalledCode() );
		( new PrivateFiles( new PrivateDirectory( $site ), $site->id() ) )->remove();
		foreach ( $this->found( $wpdb->options, 'option_name' ) as $row ) {
			delete_option( $row->name );
		}
	}

	/**
	 * Returns the names in a table that start with a prefix of the plugin, each with its owner's id.
	 *
	 * @param string $table  Table name; never from input.
	 * @param string $column Name of the name column.
	 * @param string $owner  Column of the owner id, or ''.
	 * @return list<object{name: string, owner: string}>
	 */
	private function found( string $table, string $column, string $owner = '' ): array {
		global $wpdb;
		$rows = [];
		foreach ( self::PREFIXES as $prefix ) {
			// phpcs:ignore WordPress.DB -- looked up once, to be deleted through core.
			$found = $wpdb->get_results( $wpdb->prepare( 'SELECT DISTINCT %i AS name, %i AS owner FROM %i WHERE %i LIKE %s', $column, '' === $owner ? $column : $owner, $table, $column, $wpdb->esc_like( $prefix ) . '%' ) );
			$rows  = array_merge( $rows, is_array( $found ) ? $found : [] );
		}
		return $rows;
	}
}
