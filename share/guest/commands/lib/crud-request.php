<?php
/**
 * Reads the operation of `wordpress.crud-operation`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * One operation on one kind of objects, in the form `wp-codebox/wordpress-crud-operation/v1`:
 * {schema, operation, resource: {kind, type?, id?, path?, route?, identifiers?}, data?, query?, options?, metadata?}.
 *
 * The short form {operation, type, id?, taxonomy?, objectType?, objectId?, key?, data?, query?, limit?, offset?,
 * force?} is converted to it.
 */
final class Crud_Request {
	/** Schema id of an operation. */
	private const SCHEMA = 'wp-codebox/wordpress-crud-operation/v1';

	/** Operations. */
	private const OPERATIONS = array( 'create', 'read', 'update', 'delete', 'list' );

	/** Kinds by other names for them. */
	private const KINDS = array(
		'posts'         => 'post',
		'post-type'     => 'post',
		'media'         => 'attachment',
		'terms'         => 'term',
		'taxonomy'      => 'term',
		'taxonomy-term' => 'term',
		'tag'           => 'post_tag',
		'users'         => 'user',
		'comments'      => 'comment',
		'options'       => 'option',
		'setting'       => 'option',
		'metadata'      => 'meta',
		'rest-resource' => 'rest',
		'rest-route'    => 'rest',
		'route'         => 'rest',
	);

	/** Kind of the object: post, term, user, comment, option, meta or rest; another word is not supported. */
	public readonly string $kind;

	/** Post type, taxonomy or type of the object with metadata; '' when the operation names none. */
	public readonly string $type;

	/**
	 * Creates the request from its members.
	 *
	 * @param string              $operation Name of the operation.
	 * @param array<string,mixed> $resource  Kind, type and identity of the object.
	 * @param array<string,mixed> $members   Members data, query, options and metadata, as far as they are given.
	 */
	private function __construct( public readonly string $operation, private readonly array $resource, private readonly array $members ) {
		$kind = strtolower( str_replace( '_', '-', $resource['kind'] ) );
		$kind = self::KINDS[ $kind ] ?? $resource['kind'];
		$type = (string) ( $resource['type'] ?? '' );
		if ( 1 === preg_match( '/^(post|term|user|comment)[-_]?meta$/', $kind, $found ) ) {
			list( $kind, $type ) = array( 'meta', '' === $type ? $found[1] : $type );
		} elseif ( ! in_array( $kind, array( 'post', 'term', 'user', 'comment', 'option', 'meta', 'rest' ), true ) && '' === $type ) {
			// The name of a post type or of a taxonomy is a kind too.
			list( $kind, $type ) = match ( true ) {
				post_type_exists( $kind ) => array( 'post', $kind ),
				taxonomy_exists( $kind ) => array( 'term', $kind ),
				default => array( $kind, $type ),
			};
		}
		$this->kind = $kind;
		$this->type = $type;
	}

	/**
	 * Reads an operation in either form.
	 *
	 * @param array<string,mixed> $given Operation as given.
	 */
	public static function read( array $given ): self {
		$operation = $given['operation'] ?? null;
		if ( ! in_array( $operation, self::OPERATIONS, true ) ) {
			throw Refusal::input( sprintf( 'operation is %s, but must be one of %s', Arguments::shown( $operation ), implode( ', ', self::OPERATIONS ) ) );
		}
		if ( ! isset( $given['resource'] ) ) {
			return self::short( $operation, $given );
		}
		Arguments::closed( $given, array( 'schema', 'operation', 'resource', 'data', 'query', 'options', 'metadata' ), 'operation-json' );
		if ( self::SCHEMA !== ( $given['schema'] ?? self::SCHEMA ) ) {
			throw Refusal::input( sprintf( 'schema is %s, but must be %s', Arguments::shown( $given['schema'] ), self::SCHEMA ) );
		}
		$members = array_diff_key( $given, array_flip( array( 'schema', 'operation', 'resource' ) ) );
		foreach ( $members + array( 'resource' => $given['resource'] ) as $name => $value ) {
			if ( ! is_array( $value ) || array() !== $value && array_is_list( $value ) ) {
				throw Refusal::input( "$name must be an object" );
			}
		}
		$resource = Arguments::closed( $given['resource'], array( 'kind', 'type', 'id', 'path', 'route', 'identifiers' ), 'resource' );
		foreach ( array( 'kind', 'type', 'path', 'route' ) as $name ) {
			if ( ( 'kind' === $name || isset( $resource[ $name ] ) ) && ( ! is_string( $resource[ $name ] ?? null ) || '' === $resource[ $name ] ) ) {
				throw Refusal::input( "resource.$name must be a text" );
			}
		}
		if ( isset( $resource['id'] ) && ! is_string( $resource['id'] ) && ! is_int( $resource['id'] ) && ! is_float( $resource['id'] ) ) {
			throw Refusal::input( 'resource.id must be a text or a number' );
		}
		if ( ! is_array( $resource['identifiers'] ?? array() ) || array_filter( $resource['identifiers'] ?? array(), 'is_array' ) ) {
			throw Refusal::input( 'resource.identifiers must be an object of texts, numbers, truth values and null' );
		}
		return new self( $operation, $resource, $members );
	}

	/**
	 * Converts the short form of an operation.
	 *
	 * @param string              $operation Name of the operation.
	 * @param array<string,mixed> $given     Operation as given.
	 */
	private static function short( string $operation, array $given ): self {
		$kind  = $given['type'] ?? null;
		$kinds = array( 'post', 'term', 'user', 'comment', 'option', 'meta' );
		if ( ! in_array( $kind, $kinds, true ) ) {
			throw Refusal::input( sprintf( 'operation-json has no resource {kind, type?, id?}, and type is %s, but must be one of %s', Arguments::shown( $kind ), implode( ', ', $kinds ) ) );
		}
		$place = match ( $kind ) {
			'term' => array( 'taxonomy' ),
			'meta' => array( 'objectType', 'objectId' ),
			default => array(),
		};
		$id    = in_array( $kind, array( 'option', 'meta' ), true ) ? array( 'id', 'key' ) : array( 'id' );
		$known = match ( $operation ) {
			'list' => array( 'query', 'limit', 'offset' ),
			'create' => array( 'data' ),
			'read' => $id,
			'delete' => array( ...$id, 'force' ),
			'update' => array( ...$id, 'data' ),
		};
		Arguments::closed( $given, array( 'operation', 'type', ...$place, ...$known ), "operation-json ($operation of a $kind)" );
		foreach ( array( 'data', 'query' ) as $name ) {
			if ( isset( $given[ $name ] ) && ( ! is_array( $given[ $name ] ) || array() !== $given[ $name ] && array_is_list( $given[ $name ] ) ) ) {
				throw Refusal::input( "$name must be an object" );
			}
		}
		$resource = array( 'kind' => $kind ) + array_filter(
			array(
				'type'        => $given['taxonomy'] ?? $given['objectType'] ?? null,
				'id'          => $given['id'] ?? $given['key'] ?? null,
				'identifiers' => isset( $given['objectId'] ) ? array( 'objectId' => $given['objectId'] ) : null,
			),
			static fn ( $value ): bool => null !== $value
		);
		$options = array_intersect_key( $given, array_flip( array( 'limit', 'offset', 'force' ) ) );
		return new self( $operation, $resource, array_intersect_key( $given, array_flip( array( 'data', 'query' ) ) ) + ( $options ? array( 'options' => $options ) : array() ) );
	}

	/**
	 * Returns the operation as the result reports it; secrets masked.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		$resource = $this->resource;
		if ( isset( $resource['identifiers'] ) ) {
			$resource['identifiers'] = (object) $resource['identifiers'];
		}
		return array(
			'schema'    => self::SCHEMA,
			'operation' => $this->operation,
			'resource'  => $resource,
		) + array_map( static fn ( array $member ): object => (object) plain( $member ), $this->members );
	}

	/**
	 * Returns a member of the operation: data, query or options.
	 *
	 * @param string $name Name of the member.
	 * @return array<string,mixed>
	 */
	public function member( string $name ): array {
		return $this->members[ $name ] ?? array();
	}

	/**
	 * Returns what identifies the object: `id`, or one of the identifiers.
	 *
	 * @param string ...$names Names of identifiers, first match wins.
	 */
	public function identifier( string ...$names ): mixed {
		if ( isset( $this->resource['id'] ) && in_array( 'id', $names, true ) ) {
			return $this->resource['id'];
		}
		foreach ( $names as $name ) {
			if ( isset( $this->resource['identifiers'][ $name ] ) ) {
				return $this->resource['identifiers'][ $name ];
			}
		}
		return null;
	}

	/**
	 * Returns route or path of a REST resource; '' when the operation names none.
	 */
	public function route(): string {
		return (string) ( $this->resource['route'] ?? $this->resource['path'] ?? '' );
	}

	/**
	 * Returns a number of the operation from `options` or `query`, such as the limit; the default if both lack it.
	 *
	 * @param list<string> $names    Names of the number, first match wins.
	 * @param int          $fallback Value used when the operation names none.
	 * @param int          $least    Smallest allowed number.
	 * @param int          $most     Largest allowed number.
	 */
	public function number( array $names, int $fallback, int $least, int $most ): int {
		foreach ( array( 'options', 'query' ) as $member ) {
			foreach ( $names as $name ) {
				$value = $this->members[ $member ][ $name ] ?? null;
				if ( null === $value ) {
					continue;
				}
				if ( ! is_numeric( $value ) || (int) $value != $value || $value < $least || $value > $most ) {
					throw Refusal::input( sprintf( '%s is %s, but must be a whole number from %d to %d', $name, Arguments::shown( $value ), $least, $most ) );
				}
				return (int) $value;
			}
		}
		return $fallback;
	}

	/**
	 * Returns whether an option of the operation is true.
	 *
	 * @param string $name Name of the option.
	 */
	public function option( string $name ): bool {
		return true === ( $this->members['options'][ $name ] ?? false );
	}
}
