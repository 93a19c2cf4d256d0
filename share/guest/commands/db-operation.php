<?php
/**
 * Command `wordpress.db-operation`: runs one SQL statement with separate values.
 *
 * `operation-json` is {operation: schema|read|inspect|query-summary|write, resource?: {table?, identifiers?},
 * query?: {table?, columns?, where?, orderBy?, limit?, offset?, values?, sql?, statement?}, options?, metadata?}.
 * schema and inspect describe a table or all; query-summary returns the plan of a statement; write runs the
 * statement of `sql`, or an insert (values), update (values and where) or delete (where). Short forms:
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
		return ( new Statement( $GLOBALS['wpdb'] ) )->run( Statement_Request::read( $arguments->object( 'operation-json' ) ) );
	}
);
