<?php
/**
 * Reports and changes whether a plugin is installed and active.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';
require_once __DIR__ . '/plugins.php';

/**
 * Performs the requested action on a plugin and reports the active plugins before and after it.
 *
 * `report`, `status` and `inspect` are the same action. Without a plugin, it reports the active plugins only.
 *
 * @param Arguments $arguments Arguments action, plugin, slug, file, path, network.
 * @return array<string,mixed> `wp-codebox/wordpress-plugin-state/v1`.
 */
function plugin_state( Arguments $arguments ): array {
	wp_set_current_user( Users::administrator()->ID );
	require_once ABSPATH . 'wp-admin/includes/plugin.php';
	$looks    = array( 'report', 'status', 'inspect' );
	$action   = 'wordpress.ensure-plugin-active' === Entry::$call['command'] ? 'activate' : $arguments->word( 'action', array( ...$looks, 'activate', 'deactivate' ), 'inspect' );
	$document = array(
		'schema'                     => 'wp-codebox/wordpress-plugin-state/v1',
		'action'                     => $action,
		'status'                     => 'ok',
		'target'                     => (object) array(),
		'activePluginsBefore'        => Plugins::active( 'site' ),
		'networkActivePluginsBefore' => Plugins::active( 'network' ),
	);
	$error    = null;
	try {
		$document = array_merge( $document, plugin_action( $arguments, in_array( $action, $looks, true ) ? 'inspect' : $action ) );
	} catch ( Refusal $refusal ) {
		$error = $refusal;
	}
	$document += array(
		'activePluginsAfter'        => Plugins::active( 'site' ),
		'networkActivePluginsAfter' => Plugins::active( 'network' ),
		'multisite'                 => array(
			'enabled' => is_multisite(),
			'network' => $arguments->truth( 'network', false ),
		),
		'diagnostics'               => array(),
		'errors'                    => array(),
		'artifactRefs'              => array(),
	);
	return null === $error ? $document : throw $error->with( $document );
}

/**
 * Performs an action on the plugin that the arguments name.
 *
 * @param Arguments $arguments Arguments plugin, slug, file, path, network.
 * @param string    $action    Action: inspect, activate or deactivate.
 * @return array<string,mixed> Members of the result document.
 */
function plugin_action( Arguments $arguments, string $action ): array {
	$reference = Plugins::reference( $arguments );
	if ( 'inspect' === $action && '' === $reference ) {
		return array( 'changed' => false );
	}
	$file    = 'inspect' === $action ? Plugins::named( $arguments ) : Plugins::get( $arguments );
	$network = $arguments->truth( 'network', false );
	$before  = Plugins::state( $file );
	$wanted  = $network ? $before['networkActive'] : $before['active'];
	if ( 'inspect' !== $action && ! ( 'activate' === $action ? $wanted : ! $before['active'] ) ) {
		Plugins::change( (string) $file, $action, $network );
	}
	$after = Plugins::state( $file );
	return array(
		'target'  => array( 'reference' => $reference ) + $after,
		'changed' => $before['active'] !== $after['active'] || $before['networkActive'] !== $after['networkActive'],
	) + $after;
}
