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
		if ( ! $arguments->truth( 'secret_placeholders_only', true ) ) {
			throw Refusal::input( 'secret_placeholders_only is false, but this command never shows a value; leave it out or set it to true, and read a value with wordpress.crud-operation' );
		}
		return result( 'wordpress-plugin-module-options-tables-inventory' ) + ( new Ownership() )->document() + array(
			'diagnostics' => $arguments->truth( 'read_only', true ) ? array() : array(
				array(
					'code'    => 'read-only',
					'message' => 'read_only is false, but this command can only read; it wrote nothing',
				),
			),
		);
	}
);
