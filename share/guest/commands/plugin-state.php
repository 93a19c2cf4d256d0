<?php
/**
 * Commands `wordpress.plugin-state` and `wordpress.ensure-plugin-active`: whether a plugin is
 * there and active, and changes of that.
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
		$ensure = 'wordpress.ensure-plugin-active' === WPCodebox\Guest\Command\Entry::$call['command'];
		$action = $ensure ? 'activate' : $arguments->word( 'action', array( 'inspect', 'activate', 'deactivate' ), 'inspect' );
		$file   = 'inspect' === $action ? WPCodebox\Guest\Command\Plugins::named( $arguments ) : WPCodebox\Guest\Command\Plugins::get( $arguments );
		$before = WPCodebox\Guest\Command\Plugins::state( $file );
		$wanted = $arguments->truth( 'network', false ) ? $before['networkActive'] : $before['active'];
		if ( 'inspect' !== $action && ! ( 'activate' === $action ? $wanted : ! $before['active'] ) ) {
			WPCodebox\Guest\Command\Plugins::change( $file, $action, $arguments->truth( 'network', false ) );
		}
		$after = WPCodebox\Guest\Command\Plugins::state( $file );
		return array(
			'schema'  => 'wp-codebox/wordpress-plugin-state/v1',
			'action'  => $ensure ? 'ensure-active' : $action,
			'changed' => $before['active'] !== $after['active'] || $before['networkActive'] !== $after['networkActive'],
		) + $after;
	}
);
