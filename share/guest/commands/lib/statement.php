<?php
/**
 * Runs one SQL statement on WordPress's database, with limits for rows and bytes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/sql.php';
require_once __DIR__ . '/statement-parts.php';

/**
 * Runs the statement through wpdb; values are always separate from the SQL text.
 */
final class Statement {
	/** Maximum number of returned rows; an operation may request fewer. */
	private const ROWS = 1000;
	/** Size limit of all returned rows together, in bytes; an operation may request less. */
	private const BYTES = 1048576;
	/** Size limit of one returned value, in bytes. */
	private const CELL = 65536;

	/** Builds the parts of the statement. */
	private readonly Statement_Parts $parts;

	/**
	 * Creates the object.
	 *
	 * @param \wpdb $db Database connection.
	 */
	public function __construct( private readonly \wpdb $db ) {
		$this->parts = new Statement_Parts( $db );
	}

	/**
	 * Runs the requested operation and returns its result.
	 *
	 * @param array<string,mixed> $operation Operation as requested.
	 * @return array<string,mixed> Result document.
	 */
	public function run( array $operation ): array {
		$name = $operation['operation'] ?? null;
		if ( ! in_array( $name, array( 'select', 'explain', 'insert', 'update', 'delete' ), true ) ) {
			throw Refusal::input( sprintf( 'operation is %s, but must be one of select, explain, insert, update, delete', Arguments::shown( $name ) ) );
		}
		$reads = in_array( $name, array( 'select', 'explain' ), true );
		if ( ! $reads && false !== ( $operation['readOnly'] ?? false ) ) {
			throw Refusal::input( "operation $name writes, but readOnly is set" );
		}
		$members = match ( true ) {
			// given() rejects table, columns and where beside sql with its own message.
			isset( $operation['sql'] ) => array( 'sql', 'values', 'table', 'columns', 'where', ...( $reads ? array( 'limit', 'maxBytes' ) : array() ) ),
			$reads => array( 'table', 'columns', 'where', 'orderBy', 'limit', 'offset', 'maxBytes' ),
			'insert' === $name => array( 'table', 'values' ),
			'update' === $name => array( 'table', 'values', 'where' ),
			default => array( 'table', 'where' ),
		};
		Arguments::closed( $operation, array( 'operation', 'readOnly', ...$members ), "operation-json ($name)" );
		$limit = $this->bound( $operation, 'limit', self::ROWS );
		$text  = isset( $operation['sql'] ) ? $this->given( $operation, $reads, $limit + 1 ) : $this->built( $name, $operation, $limit + 1 );

		$this->db->hide_errors();
		$this->db->suppress_errors();
		$start    = hrtime( true );
		$answer   = $reads ? ( 'explain' === $name ? $this->plan( $text ) : $this->db->get_results( $text, ARRAY_A ) ) : $this->db->query( $text );
		$document = array(
			'schema'     => 'wp-codebox/wordpress-db-result/v1',
			'status'     => 'ok',
			'operation'  => $name,
			'readOnly'   => $reads,
			'durationMs' => round( ( hrtime( true ) - $start ) / 1e6, 3 ),
		);
		if ( isset( $operation['table'] ) ) {
			$document['table'] = $this->parts->table( $operation['table'] );
		}
		if ( '' !== $this->db->last_error || false === $answer || null === $answer ) {
			throw Refusal::failed( 'the database refused the statement: ' . $this->complaint() );
		}
		if ( $reads ) {
			return $document + $this->rows( (array) $answer, $limit, $this->bound( $operation, 'maxBytes', self::BYTES ) );
		}
		$document['affectedRows'] = (int) $answer;
		if ( 'insert' === $name ) {
			$document['insertId'] = (int) $this->db->insert_id;
		}
		return $document;
	}

	/**
	 * Returns the query plan that the database reports for a statement.
	 *
	 * @param string $text SQL statement.
	 * @return ?list<array<string,mixed>>
	 */
	private function plan( string $text ): ?array {
		$driver = $this->db->dbh;
		if ( ! is_object( $driver ) || ! method_exists( $driver, 'get_last_sqlite_queries' ) ) {
			return $this->db->get_results( 'EXPLAIN ' . $text, ARRAY_A );
		}
		// The SQLite drop-in does not translate EXPLAIN, so the translated statement is explained.
		if ( null === $this->db->get_results( $text, ARRAY_A ) || '' !== $this->db->last_error ) {
			return null;
		}
		$made = array_values( array_filter( $driver->get_last_sqlite_queries(), static fn ( $row ): bool => 1 === preg_match( '/^\s*(?:SELECT|WITH)\b/i', (string) $row['sql'] ) ) );
		if ( array() === $made ) {
			throw Refusal::failed( 'the database could not prepare the statement for EXPLAIN' );
		}
		$last = end( $made );
		return $driver->execute_sqlite_query( 'EXPLAIN QUERY PLAN ' . $last['sql'], (array) $last['params'] )->fetchAll( \PDO::FETCH_ASSOC );
	}

	/**
	 * Returns the error message of the database, without statement and backtrace.
	 */
	private function complaint(): string {
		$text  = explode( 'Backtrace:', wp_strip_all_tags( $this->db->last_error ) )[0];
		$lines = array_values( array_filter( array_map( 'trim', explode( "\n", $text ) ) ) );
		return cut( (string) ( end( $lines ) ?: 'it did not say why' ), 500 );
	}

	/**
	 * Returns the rows that fit the limits.
	 *
	 * @param list<array<string,mixed>> $answer Rows from the database.
	 * @param int                       $limit  Maximum number of rows.
	 * @param int                       $bytes  Maximum number of bytes.
	 * @return array<string,mixed>
	 */
	private function rows( array $answer, int $limit, int $bytes ): array {
		$rows    = array();
		$size    = 0;
		$by_size = false;
		foreach ( array_slice( $answer, 0, $limit ) as $row ) {
			// Database values are reported unmasked, except password columns.
			$shown = array();
			foreach ( $row as $column => $value ) {
				$shown[ $column ] = 'user_pass' === $column || 'user_activation_key' === $column && '' !== $value ? MASK : ( is_string( $value ) ? plain_text( $value, self::CELL ) : $value );
			}
			$size += strlen( (string) json_encode( $shown, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE ) );
			if ( $size > $bytes ) {
				$by_size = true;
				break;
			}
			$rows[] = $shown;
		}
		return array(
			'columns'   => array_map( 'strval', array_keys( $answer[0] ?? array() ) ),
			'rows'      => $rows,
			'rowCount'  => count( $rows ),
			'truncated' => array(
				'rows'  => count( $answer ) > $limit,
				'bytes' => $by_size,
			),
		);
	}

	/**
	 * Builds the statement when the operation gives SQL text and values.
	 *
	 * @param array<string,mixed> $operation Operation as requested.
	 * @param bool                $reads     Whether the operation only reads.
	 * @param int                 $most      Maximum number of rows.
	 */
	private function given( array $operation, bool $reads, int $most ): string {
		if ( ! $reads ) {
			throw Refusal::input( 'sql is for select and explain; insert, update and delete name table, values and where' );
		}
		if ( isset( $operation['table'] ) || isset( $operation['where'] ) || isset( $operation['columns'] ) ) {
			throw Refusal::input( 'give either sql or table, columns and where' );
		}
		$values = $operation['values'] ?? array();
		if ( ! is_string( $operation['sql'] ) || ! is_array( $values ) || ! array_is_list( $values ) || array_filter( $values, static fn ( $v ): bool => ! is_scalar( $v ) ) ) {
			throw Refusal::input( 'sql must be a text, and values a list of texts, numbers and truth values' );
		}
		$sql = new Sql( str_replace( '{prefix}', $this->db->prefix, $operation['sql'] ) );
		return $sql->bounded( $this->db, $values, $most );
	}

	/**
	 * Builds the statement when the operation gives table, columns and conditions.
	 *
	 * @param string              $name      Name of the operation.
	 * @param array<string,mixed> $operation Operation as requested.
	 * @param int                 $most      Maximum number of rows.
	 */
	private function built( string $name, array $operation, int $most ): string {
		$table   = $this->parts->table( $operation['table'] ?? null );
		$columns = $this->parts->columns( $table );
		$where   = $this->parts->where( $operation['where'] ?? array(), $columns );
		if ( '' === $where && in_array( $name, array( 'update', 'delete' ), true ) ) {
			throw Refusal::input( "$name needs where: it would change every row of $table" );
		}
		if ( in_array( $name, array( 'insert', 'update' ), true ) ) {
			$values = $this->parts->values( $operation['values'] ?? null, $columns );
			$parts  = array_map( fn ( string $column ): string => $this->db->prepare( '%i', $column ), array_keys( $values ) );
			$held   = array_map( fn ( $value ): string => $this->parts->literal( $value ), array_values( $values ) );
			return 'insert' === $name
				? $this->db->prepare( 'INSERT INTO %i', $table ) . ' (' . implode( ', ', $parts ) . ') VALUES (' . implode( ', ', $held ) . ')'
				: $this->db->prepare( 'UPDATE %i SET ', $table ) . implode( ', ', array_map( static fn ( $part, $value ): string => "$part = $value", $parts, $held ) ) . $where;
		}
		if ( 'delete' === $name ) {
			return $this->db->prepare( 'DELETE FROM %i', $table ) . $where;
		}
		$asked = $operation['columns'] ?? array();
		if ( ! is_array( $asked ) ) {
			throw Refusal::input( 'columns must be a list of names' );
		}
		$list = array_map( fn ( $column ): string => $this->db->prepare( '%i', $this->parts->column( $column, $columns ) ), $asked );
		$sql  = 'SELECT ' . ( $list ? implode( ', ', $list ) : '*' ) . $this->db->prepare( ' FROM %i', $table ) . $where . $this->parts->order( $operation['orderBy'] ?? array(), $columns );
		return $sql . $this->db->prepare( ' LIMIT %d OFFSET %d', $most, $this->bound( $operation, 'offset', PHP_INT_MAX >> 8, 0 ) );
	}

	/**
	 * Returns a limit: the value in the operation if it gives one, which must not exceed the highest.
	 *
	 * @param array<string,mixed> $operation Operation as requested.
	 * @param string              $name      Name of the limit.
	 * @param int                 $most      Highest value.
	 * @param ?int                $fallback  Default value; null uses the highest.
	 */
	private function bound( array $operation, string $name, int $most, ?int $fallback = null ): int {
		$value = $operation[ $name ] ?? $fallback ?? $most;
		if ( ! is_int( $value ) || $value < 0 || $value > $most ) {
			throw Refusal::input( sprintf( '%s is %s, but must be a whole number from 0 to %d', $name, Arguments::shown( $value ), $most ) );
		}
		return $value;
	}
}
