<?php
/**
 * Command `wordpress.inventory-plugin-module-options-tables`: options and tables that are not
 * WordPress's own, with the plugins whose code names them.
 *
 * WordPress keeps no owner of an option or a table: a plugin is named when the name stands in its
 * PHP files. Values are not shown, only kind and size; of a secret nothing but a placeholder.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/tables.php';
require __DIR__ . '/lib/ownership.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
require_once ABSPATH . 'wp-admin/includes/plugin.php';
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		foreach ( array( 'read_only', 'secret_placeholders_only' ) as $name ) {
			if ( ! $arguments->truth( $name, true ) ) {
				throw WPCodebox\Guest\Command\Refusal::input( "$name is false, but this command only reads and never shows a value; leave it out or say true" );
			}
		}
		return array( 'schema' => 'wp-codebox/wordpress-plugin-module-options-tables-inventory/v1' ) + ( new WPCodebox\Guest\Command\Ownership() )->document();
	}
);
