<?php
/**
 * Builds the parts of an SQL statement from table, columns and values of the caller.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Checks that the named tables and columns exist, and converts the request to SQL.
 */
final class Statement_Parts {
	/** Comparison operators of `where`. */
	private const COMPARISONS = array( '=', '!=', '<', '<=', '>', '>=', 'LIKE', 'NOT LIKE' );

	/**
	 * Creates the object.
	 *
	 * @param \wpdb $db Database connection.
	 */
	public function __construct( private readonly \wpdb $db ) {}

	/**
	 * Returns the full name of a table; fails when it does not exist.
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
		throw Refusal::input( sprintf( 'there is no table %s; available: %s', Arguments::shown( $asked ), cut( implode( ', ', $tables ), 1000 ) ) );
	}

	/**
	 * Returns the column names of a table.
	 *
	 * @param string $table Name of the table.
	 * @return list<string>
	 */
	public function columns( string $table ): array {
		return array_map( 'strval', $this->db->get_col( $this->db->prepare( 'SHOW COLUMNS FROM %i', $table ) ) );
	}

	/**
	 * Returns the name of a column; fails when the table does not have it.
	 *
	 * @param mixed        $asked   Name of the column.
	 * @param list<string> $columns Column names.
	 */
	public function column( mixed $asked, array $columns ): string {
		if ( ! is_string( $asked ) || ! in_array( $asked, $columns, true ) ) {
			throw Refusal::input( sprintf( 'there is no column %s; available: %s', Arguments::shown( $asked ), cut( implode( ', ', $columns ), 1000 ) ) );
		}
		return $asked;
	}

	/**
	 * Returns the values to write by column, after checking the columns.
	 *
	 * @param mixed        $asked   Requested values.
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
	 * Builds the WHERE clause.
	 *
	 * @param mixed        $asked   Requested conditions.
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
	 * Builds the ORDER BY clause.
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
	 * Converts a value to an SQL literal.
	 *
	 * @param scalar|null $value Value to convert.
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
