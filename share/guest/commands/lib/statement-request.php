<?php
/**
 * Reads the operation of `wordpress.db-operation`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * One operation on the database, in the form `wp-codebox/wordpress-db-operation/v1`: {schema, operation: schema|read|
 * inspect|query-summary|write, resource?: {table?, identifiers?}, query?: {table?, columns?, where?, limit?, sql?, …},
 * options?, metadata?}.
 *
 * The short form {operation: select|explain|insert|update|delete, table?, sql?, …} is converted to it.
 */
final class Statement_Request {
	/** Schema id of an operation. */
	private const SCHEMA = 'wp-codebox/wordpress-db-operation/v1';

	/** Operations, and the statements that the short form names, each with its operation. */
	private const OPERATIONS = array(
		'schema'        => 'schema',
		'read'          => 'read',
		'inspect'       => 'inspect',
		'query-summary' => 'query-summary',
		'write'         => 'write',
		'select'        => 'read',
		'explain'       => 'query-summary',
		'insert'        => 'write',
		'update'        => 'write',
		'delete'        => 'write',
	);

	/** Largest limit that the public form has in `query`; a larger one is reported in `options`. */
	private const QUERY_LIMIT = 100;

	/**
	 * Creates the request.
	 *
	 * @param string              $operation Name of the operation.
	 * @param ?string             $statement Statement of the operation: select, explain, insert, update or delete;
	 *   null when the operation runs no statement of the caller.
	 * @param array<string,mixed> $parts     Parts of the statement: table, columns, where, values, orderBy, limit,
	 *   offset, sql, maxBytes, as far as they are given.
	 * @param array<string,mixed> $members   Members resource, query, options and metadata for the result.
	 */
	private function __construct( public readonly string $operation, public readonly ?string $statement, public readonly array $parts, private readonly array $members ) {}

	/**
	 * Reads an operation in either form.
	 *
	 * @param array<string,mixed> $given Operation as given.
	 */
	public static function read( array $given ): self {
		$name = $given['operation'] ?? null;
		if ( ! is_string( $name ) || ! isset( self::OPERATIONS[ $name ] ) ) {
			throw Refusal::input( sprintf( 'operation is %s, but must be one of %s', Arguments::shown( $name ), implode( ', ', array_keys( self::OPERATIONS ) ) ) );
		}
		return self::OPERATIONS[ $name ] === $name ? self::long( $name, $given ) : self::short( $name, $given );
	}

	/**
	 * Reads the form with resource and query.
	 *
	 * @param string              $name  Name of the operation.
	 * @param array<string,mixed> $given Operation as given.
	 */
	private static function long( string $name, array $given ): self {
		Arguments::closed( $given, array( 'schema', 'operation', 'resource', 'query', 'options', 'metadata' ), "operation-json ($name)" );
		if ( self::SCHEMA !== ( $given['schema'] ?? self::SCHEMA ) ) {
			throw Refusal::input( sprintf( 'schema is %s, but must be %s', Arguments::shown( $given['schema'] ), self::SCHEMA ) );
		}
		$members = array_diff_key( $given, array_flip( array( 'schema', 'operation' ) ) );
		foreach ( $members as $member => $value ) {
			if ( ! is_array( $value ) || array() !== $value && array_is_list( $value ) ) {
				throw Refusal::input( "$member must be an object" );
			}
		}
		$resource = Arguments::closed( $members['resource'] ?? array(), array( 'table', 'identifiers' ), 'resource' );
		$query    = Arguments::closed( $members['query'] ?? array(), array( 'table', 'columns', 'where', 'limit', 'sql', 'values', 'data', 'set', 'params', 'orderBy', 'offset', 'statement' ), 'query' );
		$options  = $members['options'] ?? array();
		$table    = $resource['table'] ?? $query['table'] ?? null;
		if ( isset( $resource['table'], $query['table'] ) && $resource['table'] !== $query['table'] ) {
			throw Refusal::input( 'resource.table and query.table differ; give one' );
		}
		$values = $query['values'] ?? $query['data'] ?? $query['set'] ?? $query['params'] ?? null;
		$where  = (array) ( $resource['identifiers'] ?? array() ) + (array) ( $query['where'] ?? array() );
		$parts  = array_filter(
			array(
				'table'    => $table,
				'columns'  => $query['columns'] ?? null,
				'where'    => array() === $where ? null : $where,
				'values'   => $values,
				'sql'      => $query['sql'] ?? null,
				'orderBy'  => $query['orderBy'] ?? null,
				'limit'    => $query['limit'] ?? $options['limit'] ?? null,
				'offset'   => $query['offset'] ?? $options['offset'] ?? null,
				'maxBytes' => $options['maxBytes'] ?? null,
			),
			static fn ( $value ): bool => null !== $value
		);
		$statement = match ( $name ) {
			'read' => 'select',
			'query-summary' => 'explain',
			'write' => $query['statement'] ?? ( isset( $parts['sql'] ) ? 'write' : ( null === $values ? 'delete' : ( array() === $where ? 'insert' : 'update' ) ) ),
			default => null,
		};
		if ( 'write' === $name && ! isset( $parts['sql'] ) && ! in_array( $statement, array( 'insert', 'update', 'delete' ), true ) ) {
			throw Refusal::input( sprintf( 'query.statement is %s, but must be insert, update or delete', Arguments::shown( $statement ) ) );
		}
		return new self( $name, $statement, $parts, $members );
	}

	/**
	 * Converts the short form of an operation.
	 *
	 * @param string              $name  Name of the statement.
	 * @param array<string,mixed> $given Operation as given.
	 */
	private static function short( string $name, array $given ): self {
		$reads = in_array( $name, array( 'select', 'explain' ), true );
		if ( ! $reads && false !== ( $given['readOnly'] ?? false ) ) {
			throw Refusal::input( "operation $name writes, but readOnly is set" );
		}
		$known = match ( true ) {
			// Statement::given() refuses table, columns and where beside sql with its own message.
			isset( $given['sql'] ) => array( 'sql', 'values', 'table', 'columns', 'where', ...( $reads ? array( 'limit', 'maxBytes' ) : array() ) ),
			$reads => array( 'table', 'columns', 'where', 'orderBy', 'limit', 'offset', 'maxBytes' ),
			'insert' === $name => array( 'table', 'values' ),
			'update' === $name => array( 'table', 'values', 'where' ),
			default => array( 'table', 'where' ),
		};
		Arguments::closed( $given, array( 'operation', 'readOnly', ...$known ), "operation-json ($name)" );
		$parts = array_diff_key( $given, array_flip( array( 'operation', 'readOnly' ) ) );
		$query   = array( 'statement' => $name ) + array_diff_key( $parts, array_flip( array( 'table', 'maxBytes' ) ) );
		$options = array_intersect_key( $given, array_flip( array( 'readOnly', 'maxBytes' ) ) );
		$members = isset( $given['table'] ) && is_string( $given['table'] ) ? array( 'resource' => array( 'table' => $given['table'] ) ) : array();
		return new self( self::OPERATIONS[ $name ], $name, $parts, $members + array( 'query' => $query ) + ( $options ? array( 'options' => $options ) : array() ) );
	}

	/**
	 * Returns whether the operation only reads.
	 */
	public function reads(): bool {
		return 'write' !== $this->operation;
	}

	/**
	 * Returns a member of the operation: options or metadata.
	 *
	 * @param string $name Name of the member.
	 * @return array<string,mixed>
	 */
	public function member( string $name ): array {
		return $this->members[ $name ] ?? array();
	}

	/**
	 * Returns the operation as the result reports it; secrets masked.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		$members = $this->members;
		$query   = $members['query'] ?? array();
		// The public form permits in `where` only values and a `limit` up to 100: other conditions become `conditions`,
		// a larger limit becomes an option.
		if ( array_filter( (array) ( $query['where'] ?? array() ), 'is_array' ) ) {
			$members['query']['conditions'] = $query['where'];
			unset( $members['query']['where'] );
		}
		if ( isset( $query['limit'] ) && ( ! is_int( $query['limit'] ) || $query['limit'] < 1 || $query['limit'] > self::QUERY_LIMIT ) ) {
			$members['options']['limit'] = $query['limit'];
			unset( $members['query']['limit'] );
		}
		$document = array(
			'schema'    => self::SCHEMA,
			'operation' => $this->operation,
		);
		foreach ( $members as $name => $member ) {
			foreach ( array( 'where', 'conditions', 'identifiers', 'values' ) as $object ) {
				if ( isset( $member[ $object ] ) && is_array( $member[ $object ] ) && ( array() === $member[ $object ] || ! array_is_list( $member[ $object ] ) ) ) {
					$member[ $object ] = (object) $member[ $object ];
				}
			}
			$document[ $name ] = (object) plain( $member, 1 << 17 );
		}
		return $document;
	}
}
