<?php
/**
 * Runs one SQL statement on WordPress's database, with limits for rows and bytes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/sql.php';
require_once __DIR__ . '/statement-request.php';
require_once __DIR__ . '/statement-parts.php';
require_once __DIR__ . '/tables.php';
require_once __DIR__ . '/watch.php';

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
	 * @param Statement_Request $request Operation as requested.
	 * @return array<string,mixed> Result document.
	 */
	public function run( Statement_Request $request ): array {
		$document = result( 'wordpress-db-result' ) + array(
			'operation'    => $request->document(),
			'readOnly'     => $request->reads(),
			'diagnostics'  => ignored_options( $request->member( 'options' ), array( 'limit', 'offset', 'maxBytes', 'readOnly' ) ),
			'errors'       => array(),
			'artifactRefs' => array(),
			'metadata'     => (object) $request->member( 'metadata' ),
		);
		if ( ! $request->reads() && false !== ( $request->member( 'options' )['readOnly'] ?? false ) ) {
			throw Refusal::input( 'operation write writes, but options.readOnly is set' );
		}
		if ( null === $request->statement ) {
			return $document + $this->tables( $request );
		}
		try {
			return $document + $this->execute( $request );
		} catch ( Refusal $refusal ) {
			throw 'wp_codebox_input_invalid' === $refusal->reason ? $refusal : new Refusal( $refusal->reason, $refusal->getMessage(), $document + $refusal->document );
		}
	}

	/**
	 * Describes one table, or all of them: the columns and indexes (schema), or the facts about them (inspect).
	 *
	 * @param Statement_Request $request Operation as requested.
	 * @return array<string,mixed> Members of the result.
	 */
	private function tables( Statement_Request $request ): array {
		$extra = array_diff( array_keys( $request->parts ), array( 'table', 'limit', 'offset' ) );
		if ( array() !== $extra ) {
			throw Refusal::input( sprintf( 'operation %s describes tables and takes only a table, not %s; use operation read for rows', $request->operation, implode( ', ', $extra ) ) );
		}
		$table = $request->parts['table'] ?? null;
		$names = null === $table ? table_names() : array( $this->parts->table( $table ) );
		$rows  = array_map(
			static function ( string $name ) use ( $request ): array {
				$facts = table_facts( $name );
				return 'schema' === $request->operation ? array_intersect_key( $facts, array_flip( array( 'name', 'columns', 'indexes' ) ) ) : array( 'columns' => array_column( $facts['columns'], 'name' ), 'indexes' => array_column( $facts['indexes'], 'name' ) ) + $facts;
			},
			array_slice( $names, $this->bound( $request->parts, 'offset', PHP_INT_MAX >> 8, 0 ), $this->bound( $request->parts, 'limit', self::ROWS ) )
		);
		return null === $table ? array(
			'items'    => $rows,
			'rowCount' => count( $rows ),
		) : array(
			'table' => $names[0],
			'item'  => $rows[0] ?? null,
			'items' => $rows,
		);
	}

	/**
	 * Runs the statement of the caller.
	 *
	 * @param Statement_Request $request Operation as requested.
	 * @return array<string,mixed> Members of the result.
	 */
	private function execute( Statement_Request $request ): array {
		$name  = (string) $request->statement;
		$parts = $request->parts;
		$reads = $request->reads();
		$limit = $this->bound( $parts, 'limit', self::ROWS );
		$text  = isset( $parts['sql'] ) ? $this->given( $parts, $reads, $limit + 1 ) : $this->built( $name, $parts, $limit + 1 );

		$this->db->hide_errors();
		$this->db->suppress_errors();
		$start   = hrtime( true );
		$answer  = $reads ? ( 'explain' === $name ? $this->plan( $text ) : $this->db->get_results( $text, ARRAY_A ) ) : $this->db->query( $text );
		$members = array(
			'durationMs' => round( ( hrtime( true ) - $start ) / 1e6, 3 ),
		);
		if ( isset( $parts['table'] ) ) {
			$members['table'] = $this->parts->table( $parts['table'] );
		}
		if ( '' !== $this->db->last_error || false === $answer || null === $answer ) {
			throw Refusal::failed( 'the database refused the statement: ' . $this->complaint(), $members );
		}
		if ( ! $reads ) {
			$members['affectedRows'] = (int) $answer;
			if ( 1 === preg_match( '/^\s*(?:INSERT|REPLACE)\b/i', $text ) ) {
				$members['insertId'] = (int) $this->db->insert_id;
			}
			return $members + array( 'item' => array_intersect_key( $members, array_flip( array( 'table', 'affectedRows', 'insertId' ) ) ) );
		}
		$members += $this->rows( (array) $answer, $limit, $this->bound( $parts, 'maxBytes', self::BYTES ) );
		return 'query-summary' === $request->operation ? $members + array(
			'item' => array(
				'query'       => fingerprint( $text ),
				'fingerprint' => hash( 'sha256', fingerprint( $text ) ),
				'plan'        => $members['items'],
			),
		) : $members;
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
			'items'     => $rows,
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
		if ( isset( $operation['table'] ) || isset( $operation['where'] ) || isset( $operation['columns'] ) ) {
			throw Refusal::input( 'give either sql or table, columns and where' );
		}
		$values = $operation['values'] ?? array();
		if ( ! is_string( $operation['sql'] ) || ! is_array( $values ) || ! array_is_list( $values ) || array_filter( $values, static fn ( $v ): bool => ! is_scalar( $v ) ) ) {
			throw Refusal::input( 'sql must be a text, and values a list of texts, numbers and truth values' );
		}
		$sql = new Sql( str_replace( '{prefix}', $this->db->prefix, $operation['sql'] ), $reads ? Sql_Kind::Read : Sql_Kind::Write );
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
