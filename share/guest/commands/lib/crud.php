<?php
/**
 * Creates, reads, updates, deletes and lists WordPress objects.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/crud-request.php';
require_once __DIR__ . '/crud-fields.php';
require_once __DIR__ . '/crud-types.php';
require_once __DIR__ . '/crud-stored.php';
require_once __DIR__ . '/crud-rest.php';

/**
 * Runs one requested operation on one type of objects.
 */
final class Crud {
	/** Maximum number of listed objects. */
	private const ROWS = 200;

	/** Names for the maximum number of listed objects: that of this command, and those of WordPress's query classes. */
	private const LIMITS = array( 'limit', 'per_page', 'perPage', 'posts_per_page', 'number' );

	/**
	 * Creates the object.
	 *
	 * @param Crud_Request $request Operation as requested.
	 */
	public function __construct( private readonly Crud_Request $request ) {}

	/**
	 * Runs the operation and returns its result.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function run(): array {
		$kind     = $this->request->kind;
		$document = result( 'wordpress-crud-result' ) + array(
			'operation'    => $this->request->document(),
			'effects'      => array(),
			'diagnostics'  => ignored_options( $this->request->member( 'options' ), array( ...self::LIMITS, 'page', 'paged', 'offset', 'force' ) ),
			'errors'       => array(),
			'artifactRefs' => array(),
			'metadata'     => (object) $this->request->member( 'metadata' ),
		);
		try {
			return array_merge( $document, 'rest' === $kind ? crud_rest( $this->request ) : $this->operate( $kind ) );
		} catch ( Refusal $refusal ) {
			if ( 'wp_codebox_input_invalid' === $refusal->reason ) {
				throw $refusal;
			}
			$unsupported = 'wp_codebox_command_unsupported' === $refusal->reason ? array( 'status' => 'unsupported' ) : array();
			throw new Refusal( $refusal->reason, $refusal->getMessage(), array_merge( $document, $refusal->document, $unsupported ) );
		}
	}

	/**
	 * Runs the operation with WordPress's functions for the kind of objects.
	 *
	 * @param string $kind Kind of the objects.
	 * @return array<string,mixed> Members of the result.
	 */
	private function operate( string $kind ): array {
		$type = match ( $kind ) {
			'post' => new Crud_Post(),
			'term' => new Crud_Term( $this->taxonomy() ),
			'user' => new Crud_User(),
			'comment' => new Crud_Comment(),
			'option' => new Crud_Option(),
			'meta' => $this->meta(),
			default => throw Refusal::unsupported( sprintf( 'there is no kind %s of objects; available: post, term, user, comment, option, meta, rest, and the name of a post type or a taxonomy', Arguments::shown( $kind ) ) ),
		};
		if ( 'list' === $this->request->operation ) {
			$limit  = $this->request->number( self::LIMITS, 50, 1, self::ROWS );
			$page   = $this->request->number( array( 'page', 'paged' ), 1, 1, 1 << 20 );
			$offset = $this->request->number( array( 'offset' ), ( $page - 1 ) * $limit, 0, 1 << 40 );
			$query  = array_diff_key( $this->request->member( 'query' ), array_flip( array( ...self::LIMITS, 'page', 'paged', 'offset' ) ) );
			$items  = $type->list( $query + ( 'post' === $kind && '' !== $this->request->type ? array( 'post_type' => $this->request->type ) : array() ), $limit + 1, $offset );
			return array(
				'items'     => array_map( self::shown( ... ), array_slice( $items, 0, $limit ) ),
				'count'     => min( count( $items ), $limit ),
				'truncated' => count( $items ) > $limit,
			);
		}
		if ( 'create' === $this->request->operation ) {
			$id = self::done( $type->create( $this->data( $kind ) ), 'created' );
			return array(
				'id'      => $id,
				'item'    => self::shown( (array) $type->read( $id ) ),
				'effects' => $this->effects( 'created', $id ),
			);
		}
		$id     = $this->id( $kind );
		$before = $type->read( $id );
		if ( null === $before ) {
			throw Refusal::failed( sprintf( 'there is no %s %s', $kind, Arguments::shown( $id ) ), array( 'id' => $id, 'found' => false ) );
		}
		if ( 'read' === $this->request->operation ) {
			return array(
				'id'   => $id,
				'item' => self::shown( $before ),
			);
		}
		if ( 'delete' === $this->request->operation ) {
			self::done( $type->delete( $id, $this->request->option( 'force' ) ), 'deleted' );
			$after = $type->read( $id );
			return array(
				'id'       => $id,
				'previous' => self::shown( $before ),
				'deleted'  => null === $after,
				'effects'  => $this->effects( null === $after ? 'deleted' : 'trashed', $id ),
			) + ( null === $after ? array() : array( 'item' => self::shown( $after ) ) );
		}
		self::done( $type->update( $id, $this->data( $kind ) ), 'updated' );
		return array(
			'id'       => $id,
			'previous' => self::shown( $before ),
			'item'     => self::shown( (array) $type->read( $id ) ),
			'effects'  => $this->effects( 'updated', $id ),
		);
	}

	/**
	 * Returns the effects of the operation, as the result lists them.
	 *
	 * @param string     $effect What happened.
	 * @param int|string $id     Id of the object.
	 * @return list<array<string,mixed>>
	 */
	private function effects( string $effect, int|string $id ): array {
		return array(
			array(
				'effect' => $effect,
				'kind'   => $this->request->kind,
				'id'     => $id,
			),
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
	 * @param string $kind Kind of the object.
	 */
	private function id( string $kind ): int|string {
		if ( in_array( $kind, array( 'option', 'meta' ), true ) ) {
			$id = $this->request->identifier( 'id', 'name', 'key', 'option_name', 'meta_key' );
			if ( ! is_string( $id ) || '' === $id || strlen( $id ) > 191 ) {
				throw Refusal::input( "id must be the name of the $kind" );
			}
			return $id;
		}
		$id = $this->request->identifier( 'id', 'ID', "{$kind}_id", "{$kind}Id" ) ?? 0;
		if ( 'post' === $kind && 0 === $id ) {
			$slug = $this->request->identifier( 'slug', 'post_name', 'path' );
			$post = is_string( $slug ) ? get_page_by_path( $slug, OBJECT, '' === $this->request->type ? array( 'post', 'page' ) : $this->request->type ) : null;
			$id   = $post instanceof \WP_Post ? $post->ID : $id;
		}
		if ( 'term' === $kind && 0 === $id ) {
			$slug = $this->request->identifier( 'slug' );
			$term = is_string( $slug ) ? get_term_by( 'slug', $slug, $this->taxonomy() ) : false;
			$id   = $term instanceof \WP_Term ? $term->term_id : $id;
		}
		if ( 'user' === $kind && 0 === $id ) {
			$named = $this->request->identifier( 'login', 'user_login', 'username', 'email' );
			$id    = is_string( $named ) ? Users::get( $named )->ID : $id;
		}
		if ( ! is_numeric( $id ) || (int) $id != $id || $id < 1 ) {
			throw Refusal::input( sprintf( 'id is %s, but must be a whole number from 1', Arguments::shown( $id ) ) );
		}
		return (int) $id;
	}

	/**
	 * Returns the metadata of one object.
	 */
	private function meta(): Crud_Meta {
		$types = array( 'post', 'term', 'user', 'comment' );
		$type  = '' === $this->request->type ? $this->request->identifier( 'objectType', 'object_type' ) : $this->request->type;
		if ( ! in_array( $type, $types, true ) ) {
			throw Refusal::input( sprintf( 'objectType is %s, but must be one of %s', Arguments::shown( $type ), implode( ', ', $types ) ) );
		}
		$object = $this->request->identifier( 'objectId', 'object_id', "{$type}_id", "{$type}Id" ) ?? 0;
		if ( ! is_numeric( $object ) || (int) $object != $object || $object < 1 ) {
			throw Refusal::input( sprintf( 'objectId is %s, but must be a whole number from 1', Arguments::shown( $object ) ) );
		}
		return new Crud_Meta( $type, (int) $object );
	}

	/**
	 * Returns the taxonomy that an operation on terms names.
	 */
	private function taxonomy(): string {
		$taxonomy = '' === $this->request->type ? $this->request->identifier( 'taxonomy' ) ?? 'category' : $this->request->type;
		if ( ! is_string( $taxonomy ) || ! taxonomy_exists( $taxonomy ) ) {
			throw Refusal::input( sprintf( 'there is no taxonomy %s; available: %s', Arguments::shown( $taxonomy ), cut( implode( ', ', get_taxonomies() ), 500 ) ) );
		}
		return $taxonomy;
	}

	/**
	 * Returns the fields to set, with the names that WordPress's functions take.
	 *
	 * @param string $kind Kind of the object.
	 * @return array<string,mixed>
	 */
	private function data( string $kind ): array {
		$data = $this->request->member( 'data' );
		if ( array() === $data ) {
			throw Refusal::input( 'data must have at least one field to set' );
		}
		$data = crud_fields( $kind, $data );
		if ( 'create' !== $this->request->operation ) {
			return $data;
		}
		return $data + match ( $kind ) {
			'post' => '' === $this->request->type ? array() : array( 'post_type' => $this->request->type ),
			// The name of a new option or metadata entry may be given as its id.
			'option' => array( 'name' => $this->request->identifier( 'id', 'name', 'option_name' ) ),
			'meta' => array( 'key' => $this->request->identifier( 'id', 'key', 'meta_key' ) ),
			default => array(),
		};
	}
}
