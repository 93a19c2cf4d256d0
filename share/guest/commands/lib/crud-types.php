<?php
/**
 * What can be created, read, updated, deleted and listed.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * A type of things.
 */
interface Crud_Type {
	/**
	 * Creates one; its id.
	 *
	 * @param array<string,mixed> $data Fields.
	 * @return mixed Id or WP_Error.
	 */
	public function create( array $data ): mixed;

	/**
	 * One, or null.
	 *
	 * @param int|string $id Id.
	 * @return ?array<string,mixed>
	 */
	public function read( int|string $id ): ?array;

	/**
	 * Changes one.
	 *
	 * @param int|string          $id   Id.
	 * @param array<string,mixed> $data Fields.
	 * @return mixed Truth or WP_Error.
	 */
	public function update( int|string $id, array $data ): mixed;

	/**
	 * Deletes one.
	 *
	 * @param int|string $id    Id.
	 * @param bool       $force Whether the trash is passed over.
	 * @return mixed Truth or WP_Error.
	 */
	public function delete( int|string $id, bool $force ): mixed;

	/**
	 * Some.
	 *
	 * @param array<string,mixed> $query  Conditions of WordPress's own query.
	 * @param int                 $limit  At most.
	 * @param int                 $offset First.
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
	 * Makes it.
	 *
	 * @param string $taxonomy Taxonomy.
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
 * Users.
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
	 * A user without password and keys.
	 *
	 * @param \WP_User $user User.
	 * @return array<string,mixed>
	 */
	private static function shown( \WP_User $user ): array {
		$fields = array_intersect_key( get_object_vars( $user->data ), array_flip( array( 'ID', 'user_login', 'user_nicename', 'user_email', 'user_url', 'user_registered', 'user_status', 'display_name' ) ) );
		return array( 'ID' => (int) $user->ID ) + $fields + array( 'roles' => array_values( $user->roles ) );
	}
}

/**
 * Comments.
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
	 * A comment without what its class keeps for itself.
	 *
	 * @param \WP_Comment $comment Comment.
	 * @return array<string,mixed>
	 */
	private static function shown( \WP_Comment $comment ): array {
		return array_filter( $comment->to_array(), static fn ( string $name ): bool => str_starts_with( $name, 'comment_' ) || 'user_id' === $name, ARRAY_FILTER_USE_KEY );
	}
}

/**
 * Options; read as they are stored, so that no class of a plugin is made of them.
 */
final class Crud_Option implements Crud_Type {
	/** {@inheritDoc} */
	public function create( array $data ): mixed {
		$name = $data['name'] ?? null;
		if ( ! is_string( $name ) || '' === $name || strlen( $name ) > 191 || ! array_key_exists( 'value', $data ) ) {
			throw Refusal::input( 'data of an option must have name and value' );
		}
		return add_option( $name, $data['value'], '', false !== ( $data['autoload'] ?? true ) ) ? $name : new \WP_Error( 'option_exists', 'there is an option of this name' );
	}

	/** {@inheritDoc} */
	public function read( int|string $id ): ?array {
		global $wpdb;
		$row = $wpdb->get_row( $wpdb->prepare( "SELECT option_name, option_value, autoload FROM $wpdb->options WHERE option_name = %s", $id ), ARRAY_A );
		return $row ? self::shown( $row ) : null;
	}

	/** {@inheritDoc} */
	public function update( int|string $id, array $data ): mixed {
		if ( ! array_key_exists( 'value', $data ) ) {
			throw Refusal::input( 'data of an option must have value' );
		}
		update_option( (string) $id, $data['value'] );
		return true;
	}

	/** {@inheritDoc} */
	public function delete( int|string $id, bool $force ): mixed {
		return delete_option( (string) $id );
	}

	/** {@inheritDoc} */
	public function list( array $query, int $limit, int $offset ): array {
		global $wpdb;
		if ( array_diff_key( $query, array( 'search' => 0 ) ) || ! is_string( $query['search'] ?? '' ) ) {
			throw Refusal::input( 'query of options knows only search, a part of the name' );
		}
		$like = '%' . $wpdb->esc_like( $query['search'] ?? '' ) . '%';
		$rows = $wpdb->get_results( $wpdb->prepare( "SELECT option_name, SUBSTR(option_value, 1, 65537) AS option_value, autoload FROM $wpdb->options WHERE option_name LIKE %s ORDER BY option_name LIMIT %d OFFSET %d", $like, $limit, $offset ), ARRAY_A );
		return array_map( self::shown( ... ), $rows );
	}

	/**
	 * An option.
	 *
	 * @param array<string,string> $row Row.
	 * @return array<string,mixed>
	 */
	private static function shown( array $row ): array {
		return array(
			'name'     => $row['option_name'],
			'value'    => is_secret_name( $row['option_name'] ) ? MASK : stored_value( $row['option_value'] ),
			'autoload' => $row['autoload'],
		);
	}
}

/**
 * Metadata of one thing; the id is the key.
 */
final class Crud_Meta implements Crud_Type {
	/**
	 * Makes it.
	 *
	 * @param string $type   Type of the thing.
	 * @param int    $object The thing.
	 */
	public function __construct( private readonly string $type, private readonly int $object ) {
		$there = match ( $type ) {
			'post' => get_post( $object ),
			'term' => get_term( $object ),
			'user' => get_userdata( $object ),
			default => get_comment( $object ),
		};
		if ( ! $there || is_wp_error( $there ) ) {
			throw Refusal::failed( "there is no $type $object" );
		}
	}

	/** {@inheritDoc} */
	public function create( array $data ): mixed {
		$key = $data['key'] ?? null;
		if ( ! is_string( $key ) || '' === $key || ! array_key_exists( 'value', $data ) ) {
			throw Refusal::input( 'data of meta must have key and value' );
		}
		return add_metadata( $this->type, $this->object, wp_slash( $key ), wp_slash( $data['value'] ) ) ? $key : false;
	}

	/** {@inheritDoc} */
	public function read( int|string $id ): ?array {
		$rows = $this->rows( array( 'key' => (string) $id ), 201, 0 );
		return $rows ? array(
			'key'    => (string) $id,
			'values' => array_column( $rows, 'value' ),
		) : null;
	}

	/** {@inheritDoc} */
	public function update( int|string $id, array $data ): mixed {
		if ( ! array_key_exists( 'value', $data ) ) {
			throw Refusal::input( 'data of meta must have value' );
		}
		update_metadata( $this->type, $this->object, wp_slash( (string) $id ), wp_slash( $data['value'] ) );
		return true;
	}

	/** {@inheritDoc} */
	public function delete( int|string $id, bool $force ): mixed {
		return delete_metadata( $this->type, $this->object, wp_slash( (string) $id ) );
	}

	/** {@inheritDoc} */
	public function list( array $query, int $limit, int $offset ): array {
		return $this->rows( $query, $limit, $offset );
	}

	/**
	 * Rows as they are stored.
	 *
	 * @param array<string,mixed> $query  Conditions: key.
	 * @param int                 $limit  At most.
	 * @param int                 $offset First.
	 * @return list<array<string,mixed>>
	 */
	private function rows( array $query, int $limit, int $offset ): array {
		global $wpdb;
		if ( array_diff_key( $query, array( 'key' => 0 ) ) ) {
			throw Refusal::input( 'query of meta knows only key' );
		}
		$table = _get_meta_table( $this->type );
		$sql   = $wpdb->prepare( 'SELECT meta_key, SUBSTR(meta_value, 1, 65537) AS meta_value FROM %i WHERE %i = %d', $table, $this->type . '_id', $this->object );
		if ( isset( $query['key'] ) ) {
			$sql .= $wpdb->prepare( ' AND meta_key = %s', (string) $query['key'] );
		}
		$rows = $wpdb->get_results( $sql . $wpdb->prepare( ' ORDER BY meta_key LIMIT %d OFFSET %d', $limit, $offset ), ARRAY_A );
		return array_map(
			static fn ( array $row ): array => array(
				'key'   => $row['meta_key'],
				'value' => is_secret_name( $row['meta_key'] ) ? MASK : stored_value( $row['meta_value'] ),
			),
			$rows
		);
	}
}
