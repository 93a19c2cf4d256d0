<?php
/**
 * Parts of a statement: tables and columns that exist, values apart from the text.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Judges what an operation names and makes SQL of it.
 */
final class Statement_Parts {
	/** Comparisons of `where`. */
	private const COMPARISONS = array( '=', '!=', '<', '<=', '>', '>=', 'LIKE', 'NOT LIKE' );

	/**
	 * Makes it.
	 *
	 * @param \wpdb $db The database.
	 */
	public function __construct( private readonly \wpdb $db ) {}

	/**
	 * A table that exists.
	 *
	 * @param mixed $asked Name, with or without the prefix.
	 */
	public function table( mixed $asked ): string {
		if ( ! is_string( $asked ) || '' === $asked ) {
			throw Refusal::input( 'table is required' );
		}
		$tables = $this->db->get_col( 'SHOW TABLES' );
		foreach ( array( $asked, $this->db->prefix . $asked, $this->db->base_prefix . $asked ) as $name ) {
			if ( in_array( $name, $tables, true ) ) {
				return $name;
			}
		}
		throw Refusal::input( sprintf( 'there is no table %s; there are %s', Arguments::shown( $asked ), cut( implode( ', ', $tables ), 1000 ) ) );
	}

	/**
	 * Names of a table's columns.
	 *
	 * @param string $table Table.
	 * @return list<string>
	 */
	public function columns( string $table ): array {
		return array_map( 'strval', $this->db->get_col( $this->db->prepare( 'SHOW COLUMNS FROM %i', $table ) ) );
	}

	/**
	 * A column that exists.
	 *
	 * @param mixed        $asked   Name.
	 * @param list<string> $columns Column names.
	 */
	public function column( mixed $asked, array $columns ): string {
		if ( ! is_string( $asked ) || ! in_array( $asked, $columns, true ) ) {
			throw Refusal::input( sprintf( 'there is no column %s; there are %s', Arguments::shown( $asked ), cut( implode( ', ', $columns ), 1000 ) ) );
		}
		return $asked;
	}

	/**
	 * Values by column.
	 *
	 * @param mixed        $asked   As asked.
	 * @param list<string> $columns Column names.
	 * @return array<string,mixed>
	 */
	public function values( mixed $asked, array $columns ): array {
		if ( ! is_array( $asked ) || array() === $asked || array_is_list( $asked ) ) {
			throw Refusal::input( 'values must be an object {column: value}' );
		}
		foreach ( $asked as $column => $value ) {
			$this->column( (string) $column, $columns );
			if ( null !== $value && ! is_scalar( $value ) ) {
				throw Refusal::input( "values.$column must be a text, a number, a truth value or null" );
			}
		}
		return $asked;
	}

	/**
	 * Conditions.
	 *
	 * @param mixed        $asked   As asked.
	 * @param list<string> $columns Column names.
	 */
	public function where( mixed $asked, array $columns ): string {
		if ( ! is_array( $asked ) || array() !== $asked && array_is_list( $asked ) ) {
			throw Refusal::input( 'where must be an object {column: value}' );
		}
		$parts = array();
		foreach ( $asked as $column => $value ) {
			$left = $this->db->prepare( '%i', $this->column( (string) $column, $columns ) );
			if ( null === $value ) {
				$parts[] = "$left IS NULL";
			} elseif ( is_scalar( $value ) ) {
				$parts[] = "$left = " . $this->literal( $value );
			} elseif ( is_array( $value ) && array_is_list( $value ) && array() !== $value && count( $value ) <= 1000 && ! array_filter( $value, static fn ( $v ): bool => ! is_scalar( $v ) ) ) {
				$parts[] = "$left IN (" . implode( ', ', array_map( $this->literal( ... ), $value ) ) . ')';
			} elseif ( is_array( $value ) && in_array( $value['op'] ?? null, self::COMPARISONS, true ) && is_scalar( $value['value'] ?? null ) ) {
				Arguments::closed( $value, array( 'op', 'value' ), "where.$column" );
				$parts[] = "$left {$value['op']} " . $this->literal( $value['value'] );
			} else {
				throw Refusal::input( "where.$column must be a value, null, a list of at most 1000 values or {op: " . implode( '|', self::COMPARISONS ) . ', value}' );
			}
		}
		return $parts ? ' WHERE ' . implode( ' AND ', $parts ) : '';
	}

	/**
	 * Order.
	 *
	 * @param mixed        $asked   List of {column, direction}.
	 * @param list<string> $columns Column names.
	 */
	public function order( mixed $asked, array $columns ): string {
		$parts = array();
		foreach ( is_array( $asked ) ? $asked : array( $asked ) as $row ) {
			is_array( $row ) && Arguments::closed( $row, array( 'column', 'direction' ), 'orderBy' );
			$direction = is_array( $row ) ? strtoupper( (string) ( $row['direction'] ?? 'asc' ) ) : 'ASC';
			if ( ! in_array( $direction, array( 'ASC', 'DESC' ), true ) ) {
				throw Refusal::input( 'orderBy must be a list of {column, direction: asc|desc}' );
			}
			$parts[] = $this->db->prepare( '%i', $this->column( is_array( $row ) ? $row['column'] ?? null : $row, $columns ) ) . " $direction";
		}
		return $parts ? ' ORDER BY ' . implode( ', ', $parts ) : '';
	}

	/**
	 * A value as the statement holds it.
	 *
	 * @param scalar|null $value Value.
	 */
	public function literal( string|int|float|bool|null $value ): string {
		return match ( true ) {
			null === $value => 'NULL',
			is_bool( $value ) => $value ? '1' : '0',
			is_int( $value ) => (string) $value,
			default => $this->db->prepare( '%s', (string) $value ),
		};
	}
}
