<?php
/**
 * Command `wordpress.db-operation`: runs one SQL statement with separate values.
 *
 * `operation-json` is one of
 * {operation: select, table, columns?, where?, orderBy?, limit?, offset?, maxBytes?}
 * {operation: select|explain, sql, values?, limit?, maxBytes?}
 * {operation: insert, table, values}, {operation: update, table, values, where},
 * {operation: delete, table, where}; `readOnly: true` refuses the last three.
 *
 * `where` is {column: value | null | [values] | {op, value}}. A table is named with or without
 * the prefix; in `sql`, `{prefix}` stands for it and values are %d, %f, %s (%i: a name).
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/statement.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$arguments->required( 'operation-json' );
		return ( new Statement( $GLOBALS['wpdb'] ) )->run( $arguments->object( 'operation-json' ) );
	}
);
