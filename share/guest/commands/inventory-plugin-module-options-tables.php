<?php
/**
 * Command `wordpress.inventory-plugin-module-options-tables`: lists options and tables that do not belong to
 * WordPress itself, with the plugins whose code names them.
 *
 * WordPress does not record the owner of an option or table; a plugin is listed when the name occurs in its
 * PHP files. The result has only type and size of a value, and for secrets only a placeholder.
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
