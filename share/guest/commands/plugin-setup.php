<?php
/**
 * Command `wordpress.plugin-setup`: lists, activates, deactivates or deletes plugins.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/plugins.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		wp_set_current_user( WPCodebox\Guest\Command\Users::administrator()->ID );
		$named    = '' !== $arguments->first( 'plugin', 'slug' );
		$action   = $arguments->word( 'action', array( 'list', 'activate', 'deactivate', 'delete' ), $named ? 'activate' : 'list' );
		$document = array(
			'schema' => 'wp-codebox/wordpress-plugin-setup/v1',
			'action' => $action,
			'status' => 'ok',
		);
		if ( 'list' === $action ) {
			return $document + array( 'plugins' => WPCodebox\Guest\Command\Plugins::all() );
		}
		$file = WPCodebox\Guest\Command\Plugins::get( $arguments );
		if ( 'delete' === $action ) {
			require_once ABSPATH . 'wp-admin/includes/file.php';
			deactivate_plugins( $file );
			$result = delete_plugins( array( $file ) );
			if ( true !== $result ) {
				throw new WPCodebox\Guest\Command\Refusal( 'plugin-refused', "$file was not deleted" . ( is_wp_error( $result ) ? ': ' . wp_strip_all_tags( $result->get_error_message() ) : '' ) );
			}
			wp_clean_plugins_cache( false );
			return $document + WPCodebox\Guest\Command\Plugins::state( null );
		}
		if ( $arguments->truth( 'activate', true ) || 'deactivate' === $action ) {
			WPCodebox\Guest\Command\Plugins::change( $file, $action, $arguments->truth( 'network', false ) );
		}
		return $document + WPCodebox\Guest\Command\Plugins::state( $file );
	}
);
