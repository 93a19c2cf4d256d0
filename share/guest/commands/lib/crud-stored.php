<?php
/**
 * Object types whose values are strings that may be serialized: options and metadata.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Options of the site. Values are read as stored, so unserializing creates no object of a plugin class.
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
			throw Refusal::input( 'query of options may have only the member search, a part of the name' );
		}
		$like = '%' . $wpdb->esc_like( $query['search'] ?? '' ) . '%';
		$rows = $wpdb->get_results( $wpdb->prepare( "SELECT option_name, SUBSTR(option_value, 1, 65537) AS option_value, autoload FROM $wpdb->options WHERE option_name LIKE %s ORDER BY option_name LIMIT %d OFFSET %d", $like, $limit, $offset ), ARRAY_A );
		return array_map( self::shown( ... ), $rows );
	}

	/**
	 * Converts a row of the options table to the form for results.
	 *
	 * @param array<string,string> $row Row to read.
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
 * Metadata of one post, term, user or comment; the id is the meta key.
 */
final class Crud_Meta implements Crud_Type {
	/**
	 * Creates the object.
	 *
	 * @param string $type   Type of the object.
	 * @param int    $object Id of the object.
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
	 * Returns the stored metadata rows of the object.
	 *
	 * @param array<string,mixed> $query  Condition `key`.
	 * @param int                 $limit  Maximum number of rows.
	 * @param int                 $offset Number of skipped rows.
	 * @return list<array<string,mixed>>
	 */
	private function rows( array $query, int $limit, int $offset ): array {
		global $wpdb;
		if ( array_diff_key( $query, array( 'key' => 0 ) ) ) {
			throw Refusal::input( 'query of meta may have only the member key' );
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
