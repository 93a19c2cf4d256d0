<?php
/**
 * Creates, reads, updates, deletes and lists WordPress objects.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/crud-types.php';
require_once __DIR__ . '/crud-stored.php';

/**
 * Runs one requested operation on one type of objects.
 */
final class Crud {
	/** Maximum number of listed objects. */
	private const ROWS = 200;

	/**
	 * Creates the object.
	 *
	 * @param array<string,mixed> $operation Operation as requested.
	 */
	public function __construct( private readonly array $operation ) {}

	/**
	 * Runs the operation and returns its result.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function run(): array {
		$operation = $this->word( 'operation', array( 'create', 'read', 'update', 'delete', 'list' ) );
		$name      = $this->word( 'type', array( 'post', 'term', 'user', 'comment', 'option', 'meta' ) );
		$type      = match ( $name ) {
			'post' => new Crud_Post(),
			'term' => new Crud_Term( $this->taxonomy() ),
			'user' => new Crud_User(),
			'comment' => new Crud_Comment(),
			'option' => new Crud_Option(),
			'meta' => new Crud_Meta( $this->word( 'objectType', array( 'post', 'term', 'user', 'comment' ) ), $this->number( 'objectId', 0, 1, PHP_INT_MAX ) ),
		};
		Arguments::closed( $this->operation, self::members( $operation, $name ), "operation-json ($operation of a $name)" );
		$document = array(
			'schema'    => 'wp-codebox/wordpress-crud-result/v1',
			'status'    => 'ok',
			'operation' => $operation,
			'type'      => $name,
		);
		if ( 'list' === $operation ) {
			$limit  = $this->number( 'limit', 50, 1, self::ROWS );
			$offset = $this->number( 'offset', 0, 0, 1 << 40 );
			$items  = $type->list( $this->fields( 'query' ), $limit + 1, $offset );
			return $document + array(
				'items'     => array_map( self::shown( ... ), array_slice( $items, 0, $limit ) ),
				'count'     => min( count( $items ), $limit ),
				'truncated' => count( $items ) > $limit,
			);
		}
		if ( 'create' === $operation ) {
			$id = self::done( $type->create( $this->fields( 'data' ) ), 'created' );
			return $document + array(
				'id'   => $id,
				'item' => self::shown( (array) $type->read( $id ) ),
			);
		}
		$id     = $this->id( $name );
		$before = $type->read( $id );
		if ( null === $before ) {
			throw Refusal::failed( sprintf( 'there is no %s %s', $name, Arguments::shown( $id ) ), $document + array( 'id' => $id, 'found' => false ) );
		}
		$document['id'] = $id;
		if ( 'read' === $operation ) {
			return $document + array( 'item' => self::shown( $before ) );
		}
		if ( 'delete' === $operation ) {
			self::done( $type->delete( $id, true === ( $this->operation['force'] ?? false ) ), 'deleted' );
			$after = $type->read( $id );
			return $document + array(
				'previous' => self::shown( $before ),
				'deleted'  => null === $after,
			) + ( null === $after ? array() : array( 'item' => self::shown( $after ) ) );
		}
		self::done( $type->update( $id, $this->fields( 'data' ) ), 'updated' );
		return $document + array(
			'previous' => self::shown( $before ),
			'item'     => self::shown( (array) $type->read( $id ) ),
		);
	}

	/**
	 * Returns the names of the members that an operation may have.
	 *
	 * @param string $operation Name of the operation.
	 * @param string $type      Object type.
	 * @return list<string>
	 */
	private static function members( string $operation, string $type ): array {
		$place = match ( $type ) {
			'term' => array( 'taxonomy' ),
			'meta' => array( 'objectType', 'objectId' ),
			default => array(),
		};
		$id    = in_array( $type, array( 'option', 'meta' ), true ) ? array( 'id', 'key' ) : array( 'id' );
		return array(
			'operation',
			'type',
			...$place,
			...match ( $operation ) {
				'list' => array( 'query', 'limit', 'offset' ),
				'create' => array( 'data' ),
				'read' => $id,
				'delete' => array( ...$id, 'force' ),
				'update' => array( ...$id, 'data' ),
			},
		);
	}

	/**
	 * Returns the fields of an object in the form for results.
	 *
	 * @param array<string,mixed> $item Object fields.
	 */
	private static function shown( array $item ): mixed {
		return plain( $item, 65536 );
	}

	/**
	 * Returns the id that WordPress returned, or 1 if it returned none; fails when WordPress reported an
	 * error.
	 *
	 * @param mixed  $answer Value that WordPress returned.
	 * @param string $verb   Verb for the error message.
	 */
	private static function done( mixed $answer, string $verb ): int|string {
		if ( is_wp_error( $answer ) ) {
			throw Refusal::failed( sprintf( 'WordPress refused: %s (%s)', cut( wp_strip_all_tags( $answer->get_error_message() ), 500 ), $answer->get_error_code() ) );
		}
		if ( false === $answer || null === $answer || 0 === $answer ) {
			throw Refusal::failed( "WordPress reported that the object was not $verb" );
		}
		return is_int( $answer ) || is_string( $answer ) ? $answer : 1;
	}

	/**
	 * Returns the id of the object that the operation is about.
	 *
	 * @param string $name Object type.
	 */
	private function id( string $name ): int|string {
		if ( in_array( $name, array( 'option', 'meta' ), true ) ) {
			$id = $this->operation['id'] ?? $this->operation['key'] ?? null;
			if ( ! is_string( $id ) || '' === $id || strlen( $id ) > 191 ) {
				throw Refusal::input( "id must be the name of the $name" );
			}
			return $id;
		}
		return $this->number( 'id', 0, 1, PHP_INT_MAX );
	}

	/**
	 * Returns the taxonomy that an operation on terms names.
	 */
	private function taxonomy(): string {
		$taxonomy = $this->operation['taxonomy'] ?? 'category';
		if ( ! is_string( $taxonomy ) || ! taxonomy_exists( $taxonomy ) ) {
			throw Refusal::input( sprintf( 'there is no taxonomy %s; available: %s', Arguments::shown( $taxonomy ), cut( implode( ', ', get_taxonomies() ), 500 ) ) );
		}
		return $taxonomy;
	}

	/**
	 * Returns the fields in a member of the operation.
	 *
	 * @param string $name Member name: data or query.
	 * @return array<string,mixed>
	 */
	private function fields( string $name ): array {
		$fields = $this->operation[ $name ] ?? array();
		if ( ! is_array( $fields ) || array() !== $fields && array_is_list( $fields ) ) {
			throw Refusal::input( "$name must be an object" );
		}
		if ( 'data' === $name && array() === $fields ) {
			throw Refusal::input( 'data must have at least one field to set' );
		}
		return $fields;
	}

	/**
	 * Returns a member of the operation that must be one of several words.
	 *
	 * @param string       $name  Name of the member.
	 * @param list<string> $words Allowed words.
	 */
	private function word( string $name, array $words ): string {
		$value = $this->operation[ $name ] ?? null;
		if ( ! in_array( $value, $words, true ) ) {
			throw Refusal::input( sprintf( '%s is %s, but must be one of %s', $name, Arguments::shown( $value ), implode( ', ', $words ) ) );
		}
		return $value;
	}

	/**
	 * Returns an integer member of the operation within limits.
	 *
	 * @param string $name     Name of the member.
	 * @param int    $fallback Value used when the member is missing.
	 * @param int    $least    Smallest allowed number.
	 * @param int    $most     Largest allowed number.
	 */
	private function number( string $name, int $fallback, int $least, int $most ): int {
		$value = $this->operation[ $name ] ?? $fallback;
		if ( ! is_int( $value ) || $value < $least || $value > $most ) {
			throw Refusal::input( sprintf( '%s is %s, but must be a whole number from %d%s', $name, Arguments::shown( $value ), $least, PHP_INT_MAX === $most ? '' : " to $most" ) );
		}
		return $value;
	}
}
