<?php
/**
 * Command `wordpress.crud-operation`: creates, reads, updates, deletes or lists WordPress objects through
 * WordPress's functions, as the administrator.
 *
 * `operation-json` is {operation: create|read|update|delete|list, type: post|term|user|comment|
 * option|meta, id?, data?, query?, limit?, offset?}. A term names `taxonomy`; meta names
 * `objectType` (post|term|user|comment), `objectId` and `key`; an option's id is its name.
 * `force: true` deletes a post or a comment instead of moving it to the trash.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/crud.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$arguments->required( 'operation-json' );
		wp_set_current_user( 1 );
		require_once ABSPATH . 'wp-admin/includes/user.php';
		return ( new Crud( $arguments->object( 'operation-json' ) ) )->run();
	}
);
