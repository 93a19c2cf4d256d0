<?php
/**
 * Types of WordPress objects that a command can create, read, update, delete and list.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * One type of WordPress objects, such as posts or users.
 */
interface Crud_Type {
	/**
	 * Creates an object and returns its id.
	 *
	 * @param array<string,mixed> $data Fields of the object.
	 * @return mixed Id or WP_Error.
	 */
	public function create( array $data ): mixed;

	/**
	 * Returns the fields of an object, or null when it does not exist.
	 *
	 * @param int|string $id Id of the object.
	 * @return ?array<string,mixed>
	 */
	public function read( int|string $id ): ?array;

	/**
	 * Updates an object.
	 *
	 * @param int|string          $id   Id of the object.
	 * @param array<string,mixed> $data Fields to change.
	 * @return mixed True or WP_Error.
	 */
	public function update( int|string $id, array $data ): mixed;

	/**
	 * Deletes an object.
	 *
	 * @param int|string $id    Id of the object.
	 * @param bool       $force Whether to bypass the trash.
	 * @return mixed True or WP_Error.
	 */
	public function delete( int|string $id, bool $force ): mixed;

	/**
	 * Lists the objects that a query selects.
	 *
	 * @param array<string,mixed> $query  Arguments of WordPress's own query class.
	 * @param int                 $limit  Maximum number of objects.
	 * @param int                 $offset Number of skipped objects.
	 * @return list<array<string,mixed>>
	 */
	public function list( array $query, int $limit, int $offset ): array;
}

/**
 * Posts of any type.
 */
final class Crud_Post implements Crud_Type {
	/** {@inheritDoc} */
	public function create( array $data ): mixed {
		return wp_insert_post( wp_slash( $data ), true );
	}

	/** {@inheritDoc} */
	public function read( int|string $id ): ?array {
		$post = get_post( (int) $id );
		return $post ? array_diff_key( $post->to_array(), array_flip( array( 'ancestors', 'page_template' ) ) ) : null;
	}

	/** {@inheritDoc} */
	public function update( int|string $id, array $data ): mixed {
		return wp_update_post( wp_slash( array( 'ID' => $id ) + $data ), true );
	}

	/** {@inheritDoc} */
	public function delete( int|string $id, bool $force ): mixed {
		return (bool) wp_delete_post( (int) $id, $force );
	}

	/** {@inheritDoc} */
	public function list( array $query, int $limit, int $offset ): array {
		$bounds = array(
			'posts_per_page'   => $limit,
			'offset'           => $offset,
			'suppress_filters' => true,
			'no_found_rows'    => true,
			'fields'           => '',
		);
		$posts  = ( new \WP_Query() )->query(
			$bounds + $query + array(
				'post_type'   => 'any',
				'post_status' => 'any',
				'orderby'     => 'ID',
				'order'       => 'ASC',
			)
		);
		return array_map( static fn ( \WP_Post $post ): array => get_object_vars( $post ), $posts );
	}
}

/**
 * Terms of one taxonomy.
 */
final class Crud_Term implements Crud_Type {
	/**
	 * Creates the object.
	 *
	 * @param string $taxonomy Name of the taxonomy.
	 */
	public function __construct( private readonly string $taxonomy ) {}

	/** {@inheritDoc} */
	public function create( array $data ): mixed {
		$answer = wp_insert_term( wp_slash( (string) ( $data['name'] ?? '' ) ), $this->taxonomy, wp_slash( $data ) );
		return is_array( $answer ) ? (int) $answer['term_id'] : $answer;
	}

	/** {@inheritDoc} */
	public function read( int|string $id ): ?array {
		$term = get_term( (int) $id, $this->taxonomy );
		return $term instanceof \WP_Term ? $term->to_array() : null;
	}

	/** {@inheritDoc} */
	public function update( int|string $id, array $data ): mixed {
		$answer = wp_update_term( (int) $id, $this->taxonomy, wp_slash( $data ) );
		return is_wp_error( $answer ) ? $answer : true;
	}

	/** {@inheritDoc} */
	public function delete( int|string $id, bool $force ): mixed {
		return wp_delete_term( (int) $id, $this->taxonomy );
	}

	/** {@inheritDoc} */
	public function list( array $query, int $limit, int $offset ): array {
		$bounds = array(
			'taxonomy' => $this->taxonomy,
			'number'   => $limit,
			'offset'   => $offset,
			'fields'   => 'all',
		);
		$terms  = get_terms( $bounds + $query + array( 'hide_empty' => false, 'orderby' => 'term_id' ) );
		return is_array( $terms ) ? array_map( static fn ( \WP_Term $term ): array => $term->to_array(), array_values( $terms ) ) : array();
	}
}

/**
 * Users of the site.
 */
final class Crud_User implements Crud_Type {
	/** {@inheritDoc} */
	public function create( array $data ): mixed {
		return wp_insert_user( wp_slash( $data + array( 'user_pass' => wp_generate_password( 24 ) ) ) );
	}

	/** {@inheritDoc} */
	public function read( int|string $id ): ?array {
		$user = get_userdata( (int) $id );
		return $user ? self::shown( $user ) : null;
	}

	/** {@inheritDoc} */
	public function update( int|string $id, array $data ): mixed {
		return wp_update_user( wp_slash( array( 'ID' => $id ) + $data ) );
	}

	/** {@inheritDoc} */
	public function delete( int|string $id, bool $force ): mixed {
		return wp_delete_user( (int) $id, 1 === (int) $id ? null : 1 );
	}

	/** {@inheritDoc} */
	public function list( array $query, int $limit, int $offset ): array {
		$bounds = array(
			'number' => $limit,
			'offset' => $offset,
			'fields' => 'all',
		);
		return array_map( self::shown( ... ), array_values( get_users( $bounds + $query + array( 'orderby' => 'ID' ) ) ) );
	}

	/**
	 * Returns the fields of a user without password and keys.
	 *
	 * @param \WP_User $user WordPress user.
	 * @return array<string,mixed>
	 */
	private static function shown( \WP_User $user ): array {
		$fields = array_intersect_key( get_object_vars( $user->data ), array_flip( array( 'ID', 'user_login', 'user_nicename', 'user_email', 'user_url', 'user_registered', 'user_status', 'display_name' ) ) );
		return array( 'ID' => (int) $user->ID ) + $fields + array( 'roles' => array_values( $user->roles ) );
	}
}

/**
 * Comments of the site.
 */
final class Crud_Comment implements Crud_Type {
	/** {@inheritDoc} */
	public function create( array $data ): mixed {
		return wp_insert_comment( wp_slash( $data ) );
	}

	/** {@inheritDoc} */
	public function read( int|string $id ): ?array {
		$comment = get_comment( (int) $id );
		return $comment instanceof \WP_Comment ? self::shown( $comment ) : null;
	}

	/** {@inheritDoc} */
	public function update( int|string $id, array $data ): mixed {
		$answer = wp_update_comment( wp_slash( array( 'comment_ID' => $id ) + $data ), true );
		return is_wp_error( $answer ) ? $answer : true;
	}

	/** {@inheritDoc} */
	public function delete( int|string $id, bool $force ): mixed {
		return wp_delete_comment( (int) $id, $force );
	}

	/** {@inheritDoc} */
	public function list( array $query, int $limit, int $offset ): array {
		$bounds = array(
			'number' => $limit,
			'offset' => $offset,
			'fields' => '',
			'count'  => false,
		);
		return array_map( self::shown( ... ), array_values( get_comments( $bounds + $query + array( 'orderby' => 'comment_ID', 'order' => 'ASC' ) ) ) );
	}

	/**
	 * Returns the fields of a comment without private members of its class.
	 *
	 * @param \WP_Comment $comment Comment to convert.
	 * @return array<string,mixed>
	 */
	private static function shown( \WP_Comment $comment ): array {
		return array_filter( $comment->to_array(), static fn ( string $name ): bool => str_starts_with( $name, 'comment_' ) || 'user_id' === $name, ARRAY_FILTER_USE_KEY );
	}
}
