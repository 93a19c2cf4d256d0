<?php
/**
 * Command `wordpress.plugin-setup`: lists, activates, deactivates or deletes plugins.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/plugins.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		wp_set_current_user( Users::administrator()->ID );
		$named    = '' !== $arguments->first( 'plugin', 'slug' );
		$action   = $arguments->word( 'action', array( 'list', 'activate', 'deactivate', 'delete' ), $named ? 'activate' : 'list' );
		$document = array(
			'schema' => 'wp-codebox/wordpress-plugin-setup/v1',
			'action' => $action,
			'status' => 'ok',
		);
		if ( 'list' === $action ) {
			return $document + array( 'plugins' => Plugins::all() );
		}
		$file = Plugins::get( $arguments );
		if ( 'delete' === $action ) {
			require_once ABSPATH . 'wp-admin/includes/file.php';
			deactivate_plugins( $file );
			$result = delete_plugins( array( $file ) );
			if ( true !== $result ) {
				throw new Refusal( 'plugin-refused', "$file was not deleted" . ( is_wp_error( $result ) ? ': ' . wp_strip_all_tags( $result->get_error_message() ) : '' ) );
			}
			wp_clean_plugins_cache( false );
			return $document + Plugins::state( null );
		}
		if ( $arguments->truth( 'activate', true ) || 'deactivate' === $action ) {
			Plugins::change( $file, $action, $arguments->truth( 'network', false ) );
		}
		return $document + Plugins::state( $file );
	}
);
