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

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/ownership.php';
require __DIR__ . '/lib/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

finish(
	static function ( Arguments $arguments ): array {
		foreach ( array( 'read_only', 'secret_placeholders_only' ) as $name ) {
			if ( ! $arguments->truth( $name, true ) ) {
				throw Refusal::input( "$name is false, but this command only reads and never shows a value; leave it out or say true" );
			}
		}
		return array( 'schema' => 'wp-codebox/wordpress-plugin-module-options-tables-inventory/v1' ) + ( new Ownership() )->document();
	}
);
