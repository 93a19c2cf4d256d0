<?php
/**
 * Command `wordpress.crud-operation`: creates, reads, updates, deletes or lists WordPress objects through
 * WordPress's functions, as the administrator.
 *
 * `operation-json` is {operation: create|read|update|delete|list, resource: {kind, type?, id?, path?, route?,
 * identifiers?}, data?, query?, options?, metadata?}. kind is post, term, user, comment, option, meta, rest, or
 * the name of a post type or a taxonomy; type is a post type, a taxonomy or the type of the object with
 * metadata. An option's id is its name; metadata names its object as identifiers.objectId. The route of a
 * rest resource is one of the REST API. options has limit and offset of a list, and force, which deletes a post
 * or a comment instead of moving it to the trash. lib/crud-request.php describes the short form.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/crud.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$arguments->required( 'operation-json' );
		wp_set_current_user( 1 );
		require_once ABSPATH . 'wp-admin/includes/user.php';
		return ( new Crud( Crud_Request::read( $arguments->object( 'operation-json' ) ) ) )->run();
	}
);
