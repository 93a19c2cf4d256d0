<?php
/**
 * Lists, installs, activates, deactivates and deletes plugins.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';
require_once __DIR__ . '/plugins.php';
require_once __DIR__ . '/downloads.php';

/**
 * Performs the requested action and reports its operations.
 *
 * @param Arguments $arguments Arguments action, plugin, slug, activate, network.
 * @return array<string,mixed> `wp-codebox/wordpress-plugin-setup/v1`.
 */
function plugin_setup( Arguments $arguments ): array {
	wp_set_current_user( Users::administrator()->ID );
	require_once ABSPATH . 'wp-admin/includes/plugin.php';
	$named      = '' !== $arguments->first( 'plugin', 'slug' );
	$action     = $arguments->word( 'action', array( 'install', 'list', 'activate', 'deactivate', 'delete' ), $named ? 'activate' : 'list' );
	$operations = array();
	$document   = array(
		'schema' => 'wp-codebox/wordpress-plugin-setup/v1',
		'action' => $action,
		'status' => 'ok',
		'target' => null,
	);
	$error      = null;
	try {
		$document = array_merge( $document, 'list' === $action ? array( 'plugins' => Plugins::all() ) : plugin_changed( $arguments, $action, $operations ) );
	} catch ( Refusal $refusal ) {
		$error = $refusal;
	}
	$document += array(
		'plugins'      => array(),
		'operations'   => $operations,
		'errors'       => array(),
		'artifactRefs' => array(),
	);
	return null === $error ? $document : throw $error->with( $document );
}

/**
 * Performs an action on the plugin that the arguments name.
 *
 * @param Arguments                  $arguments  Arguments plugin, slug, activate, network.
 * @param string                     $action     Action: install, activate, deactivate or delete.
 * @param list<array<string,string>> $operations Receives what was done: {operation, plugin, status}.
 * @return array<string,mixed> Members of the result document.
 */
function plugin_changed( Arguments $arguments, string $action, array &$operations ): array {
	$reference = Plugins::reference( $arguments );
	$add       = static function ( string $operation, string $status, string $file ) use ( &$operations ): void {
		$operations[] = array(
			'operation' => $operation,
			'plugin'    => $file,
			'status'    => $status,
		);
	};
	$file      = 'install' === $action ? Plugins::named( $arguments ) : Plugins::get( $arguments );
	if ( 'install' === $action ) {
		$add( 'install', null === $file ? 'installed' : 'unchanged', $file ?? downloaded( 'plugin', $reference ) );
		$file = $file ?? Plugins::get( $arguments );
	}
	if ( 'delete' === $action ) {
		require_once ABSPATH . 'wp-admin/includes/file.php';
		deactivate_plugins( $file );
		$result = delete_plugins( array( $file ) );
		if ( true !== $result ) {
			throw new Refusal( 'plugin-refused', "$file was not deleted" . ( is_wp_error( $result ) ? ': ' . wp_strip_all_tags( $result->get_error_message() ) : '' ) );
		}
		wp_clean_plugins_cache( false );
		$add( 'delete', 'deleted', $file );
		$state = Plugins::state( null );
	} else {
		$change = 'install' === $action ? 'activate' : $action;
		if ( 'deactivate' === $action || $arguments->truth( 'activate', 'activate' === $action ) ) {
			Plugins::change( $file, $change, $arguments->truth( 'network', false ) );
			$add( $change, $change . 'd', $file );
		}
		$state = Plugins::state( $file );
	}
	return array(
		'target'  => array( 'reference' => $reference ) + $state,
		'plugins' => array( $state ),
	) + $state;
}
