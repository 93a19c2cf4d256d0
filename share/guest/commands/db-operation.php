<?php
/**
 * Command `wordpress.db-operation`: one statement on the database, with values apart from it.
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

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/statement.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		$arguments->required( 'operation-json' );
		return ( new WPCodebox\Guest\Command\Statement( $GLOBALS['wpdb'] ) )->run( $arguments->object( 'operation-json' ) );
	}
);
