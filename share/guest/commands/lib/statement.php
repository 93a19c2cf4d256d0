<?php
/**
 * One statement on WordPress's database, bounded in rows and bytes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/sql.php';
require_once __DIR__ . '/statement-parts.php';

/**
 * Runs it through wpdb, values always apart from the text.
 */
final class Statement {
	/** Rows, unless it asks for fewer. */
	private const ROWS = 1000;
	/** Bytes of all rows, unless it asks for fewer. */
	private const BYTES = 1048576;
	/** Bytes of one value. */
	private const CELL = 65536;

	/** Makes the parts of a statement. */
	private readonly Statement_Parts $parts;

	/**
	 * Makes it.
	 *
	 * @param \wpdb $db The database.
	 */
	public function __construct( private readonly \wpdb $db ) {
		$this->parts = new Statement_Parts( $db );
	}

	/**
	 * Runs the operation.
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
			// `given` says that a statement as text takes no table, columns and where.
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
	 * How the database would carry a statement out.
	 *
	 * @param string $text Statement.
	 * @return ?list<array<string,mixed>>
	 */
	private function plan( string $text ): ?array {
		$driver = $this->db->dbh;
		if ( ! is_object( $driver ) || ! method_exists( $driver, 'get_last_sqlite_queries' ) ) {
			return $this->db->get_results( 'EXPLAIN ' . $text, ARRAY_A );
		}
		// The drop-in translates no EXPLAIN: what it makes of the statement itself is explained.
		if ( null === $this->db->get_results( $text, ARRAY_A ) || '' !== $this->db->last_error ) {
			return null;
		}
		$made = array_values( array_filter( $driver->get_last_sqlite_queries(), static fn ( $row ): bool => 1 === preg_match( '/^\s*(?:SELECT|WITH)\b/i', (string) $row['sql'] ) ) );
		if ( array() === $made ) {
			throw Refusal::failed( 'the database made no statement of it that could be explained' );
		}
		$last = end( $made );
		return $driver->execute_sqlite_query( 'EXPLAIN QUERY PLAN ' . $last['sql'], (array) $last['params'] )->fetchAll( \PDO::FETCH_ASSOC );
	}

	/**
	 * What the database says of the last statement, without the statement and a backtrace.
	 */
	private function complaint(): string {
		$text  = explode( 'Backtrace:', wp_strip_all_tags( $this->db->last_error ) )[0];
		$lines = array_values( array_filter( array_map( 'trim', explode( "\n", $text ) ) ) );
		return cut( (string) ( end( $lines ) ?: 'it did not say why' ), 500 );
	}

	/**
	 * The rows, within their bounds.
	 *
	 * @param list<array<string,mixed>> $answer Rows.
	 * @param int                       $limit  Rows at most.
	 * @param int                       $bytes  Bytes at most.
	 * @return array<string,mixed>
	 */
	private function rows( array $answer, int $limit, int $bytes ): array {
		$rows    = array();
		$size    = 0;
		$by_size = false;
		foreach ( array_slice( $answer, 0, $limit ) as $row ) {
			// A value of the database is shown as it is: no name masks it but that of a password.
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
	 * The statement of a text and its values.
	 *
	 * @param array<string,mixed> $operation Operation as requested.
	 * @param bool                $reads     Whether the operation reads.
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
	 * The statement of a table, columns and conditions.
	 *
	 * @param string              $name      Operation.
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
	 * A bound that the operation may narrow.
	 *
	 * @param array<string,mixed> $operation Operation as requested.
	 * @param string              $name      Its name.
	 * @param int                 $most      Largest.
	 * @param ?int                $fallback  When it is not given; the largest otherwise.
	 */
	private function bound( array $operation, string $name, int $most, ?int $fallback = null ): int {
		$value = $operation[ $name ] ?? $fallback ?? $most;
		if ( ! is_int( $value ) || $value < 0 || $value > $most ) {
			throw Refusal::input( sprintf( '%s is %s, but must be a whole number from 0 to %d', $name, Arguments::shown( $value ), $most ) );
		}
		return $value;
	}
}
