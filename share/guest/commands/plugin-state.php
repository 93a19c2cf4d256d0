<?php
/**
 * Commands `wordpress.plugin-state` and `wordpress.ensure-plugin-active`: report and change whether a plugin
 * is installed and active.
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
		$ensure = 'wordpress.ensure-plugin-active' === Entry::$call['command'];
		$action = $ensure ? 'activate' : $arguments->word( 'action', array( 'inspect', 'activate', 'deactivate' ), 'inspect' );
		$file   = 'inspect' === $action ? Plugins::named( $arguments ) : Plugins::get( $arguments );
		$before = Plugins::state( $file );
		$wanted = $arguments->truth( 'network', false ) ? $before['networkActive'] : $before['active'];
		if ( 'inspect' !== $action && ! ( 'activate' === $action ? $wanted : ! $before['active'] ) ) {
			Plugins::change( $file, $action, $arguments->truth( 'network', false ) );
		}
		$after = Plugins::state( $file );
		return array(
			'schema'  => 'wp-codebox/wordpress-plugin-state/v1',
			'action'  => $ensure ? 'ensure-active' : $action,
			'changed' => $before['active'] !== $after['active'] || $before['networkActive'] !== $after['networkActive'],
		) + $after;
	}
);
