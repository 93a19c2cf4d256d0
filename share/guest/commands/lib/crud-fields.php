<?php
/**
 * Short names of the fields of WordPress objects.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Field names of WordPress's functions by the names in its REST API and its tables, for each kind of objects. */
const CRUD_FIELDS = array(
	'post'    => array(
		'title'   => 'post_title',
		'content' => 'post_content',
		'excerpt' => 'post_excerpt',
		'status'  => 'post_status',
		'slug'    => 'post_name',
		'author'  => 'post_author',
		'parent'  => 'post_parent',
		'date'    => 'post_date',
		'type'    => 'post_type',
		'meta'    => 'meta_input',
	),
	'user'    => array(
		'login'    => 'user_login',
		'username' => 'user_login',
		'email'    => 'user_email',
		'password' => 'user_pass',
		'name'     => 'display_name',
		'url'      => 'user_url',
		'slug'     => 'user_nicename',
	),
	'comment' => array(
		'content'      => 'comment_content',
		'post'         => 'comment_post_ID',
		'author'       => 'user_id',
		'author_name'  => 'comment_author',
		'author_email' => 'comment_author_email',
		'author_url'   => 'comment_author_url',
		'parent'       => 'comment_parent',
		'status'       => 'comment_approved',
		'type'         => 'comment_type',
		'date'         => 'comment_date',
	),
	'option'  => array(
		'option_name'  => 'name',
		'option_value' => 'value',
	),
	'meta'    => array(
		'meta_key'   => 'key',
		'meta_value' => 'value',
	),
);

/**
 * Returns the fields with the names that WordPress's functions take; a field under both names keeps the long one.
 *
 * @param string              $kind Kind of the object.
 * @param array<string,mixed> $data Fields as given.
 * @return array<string,mixed>
 */
function crud_fields( string $kind, array $data ): array {
	foreach ( CRUD_FIELDS[ $kind ] ?? array() as $short => $long ) {
		if ( array_key_exists( $short, $data ) ) {
			$value = $data[ $short ];
			unset( $data[ $short ] );
			// The REST API gives a text as {raw, rendered}.
			$data += array( $long => is_array( $value ) && array_key_exists( 'raw', $value ) ? $value['raw'] : $value );
		}
	}
	return $data;
}
