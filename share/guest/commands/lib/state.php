<?php
/**
 * Records the state of a site: files, tables, options, posts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/content-files.php';
require_once __DIR__ . '/tables.php';

/**
 * Records the part of the state that the command's filters select.
 */
final class State {
	/** Size limit of all table rows in the written file together, in bytes. */
	private const ROW_BYTES = 2 << 20;
	/** Maximum number of rows per table included in the digest. */
	private const ROWS = 100000;
	/** Maximum number of reported options. */
	private const OPTIONS = 1000;
	/** Maximum number of reported posts per type. */
	private const POSTS = 500;
	/** Size limit of a reported option value, in bytes. */
	private const VALUE = 16384;
	/** Columns whose values are never reported. */
	private const SECRET_COLUMNS = array( 'user_pass', 'user_activation_key', 'post_password' );

	/** Bytes of table rows that were written so far. */
	private int $row_bytes = 0;

	/**
	 * Notes on data that limits have left out, for the result.
	 *
	 * @var list<string>
	 */
	private array $omitted = array();

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 */
	public function __construct( private readonly Arguments $arguments ) {}

	/**
	 * Records the state, writes it to a file, and returns a description of the file.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function captured(): array {
		$label = state_label( $this->arguments );
		$state = $this->state();
		$path  = write_artifact( 'wordpress-state.json', document_text( array( 'schema' => 'wp-codebox/wordpress-state/v1' ) + $state ), 'wordpress-state' );
		$brief = static fn ( array $table ): array => array_diff_key( $table, array( 'items' => 0 ) );
		$found = array(
			'schema'    => 'wp-codebox/wordpress-state-bundle-capture/v1',
			'status'    => 'ok',
			'label'     => $label,
			'wordpress' => $state['wordpress'],
			'digest'    => hash( 'sha256', document_text( $state ) ),
			'files'     => array_slice( $state['files'], 0, 4 ) + array( 'items' => array_slice( $state['files']['items'], 0, 200 ) ),
			'database'  => array( 'tables' => array_map( $brief, $state['database']['tables'] ) ),
			'options'   => array(
				'count'  => count( $state['options'] ),
				'masked' => count( array_filter( $state['options'], static fn ( array $row ): bool => MASK === $row['value'] ) ),
			),
			'postTypes' => array_map( $brief, $state['postTypes'] ),
			'omitted'   => $state['omitted'],
			'file'      => $path,
			'artifacts' => (object) array( 'runtimeSnapshot' => $path ),
		);
		$found['artifacts']->manifest = write_artifact( 'wordpress-state-manifest.json', document_text( named( $found ) ), 'wordpress-state-manifest' );
		return $found;
	}

	/**
	 * Returns the recorded state.
	 *
	 * @return array<string,mixed>
	 */
	public function state(): array {
		$state            = array(
			'wordpress' => array(
				'version' => wp_get_wp_version(),
				'home'    => home_url( '/' ),
				'theme'   => get_stylesheet(),
			),
			'files'     => $this->files()->document(),
			'database'  => array( 'tables' => array_map( $this->table( ... ), $this->tables() ) ),
			'options'   => $this->options(),
			'postTypes' => $this->post_types(),
		);
		$state['omitted'] = $this->omitted;
		return $state;
	}

	/**
	 * Returns files of wp-content selected by the filters.
	 */
	public function files(): Content_Files {
		return new Content_Files( $this->arguments->texts( 'snapshot-include-wp-content' ), $this->arguments->texts( 'snapshot-exclude-wp-content' ) );
	}

	/**
	 * Returns options selected by the filters: {name, value, autoload}.
	 *
	 * @return list<array<string,mixed>>
	 */
	public function options(): array {
		global $wpdb;
		$names = $this->arguments->texts( 'snapshot-option-names' );
		$rows  = array();
		$total = 0;
		foreach ( $wpdb->get_results( "SELECT option_name, LENGTH(option_value) AS bytes, SUBSTR(option_value, 1, 16385) AS option_value, autoload FROM $wpdb->options ORDER BY option_name LIMIT 20000", ARRAY_A ) as $row ) {
			$name = (string) $row['option_name'];
			// Transients, the cron schedule and recovery keys are skipped, unless they are requested by name.
			if ( array() === $names ? 1 === preg_match( '/^_(?:site_)?transient_|^cron$|^recovery_keys$/', $name ) : ! self::matches( $name, $names ) ) {
				continue;
			}
			if ( ++$total <= self::OPTIONS ) {
				$long   = (int) $row['bytes'] > self::VALUE;
				$rows[] = array(
					'name'     => mb_scrub( $name, 'UTF-8' ),
					'value'    => is_secret_name( $name ) ? MASK : ( $long ? array( 'bytes' => (int) $row['bytes'], 'cut' => true ) : plain( stored_value( $row['option_value'] ), self::VALUE ) ),
					'autoload' => (string) $row['autoload'],
				);
			}
		}
		if ( $total > count( $rows ) ) {
			$this->omitted[] = sprintf( 'options: %d of %d are listed', count( $rows ), $total );
		}
		return $rows;
	}

	/**
	 * Returns names of the tables selected by the filters.
	 *
	 * @return list<string>
	 */
	private function tables(): array {
		global $wpdb;
		$all     = table_names();
		$full    = static function ( string $argument, array $names ) use ( $all, $wpdb ): array {
			$found = array();
			foreach ( $names as $name ) {
				$name = str_starts_with( $name, $wpdb->prefix ) ? $name : $wpdb->prefix . $name;
				if ( ! array_filter( $all, static fn ( string $table ): bool => fnmatch( $name, $table ) ) ) {
					throw Refusal::input( sprintf( '%s lists %s, but there is no such table', $argument, Arguments::shown( $name ) ) );
				}
				$found[] = $name;
			}
			return $found;
		};
		$include = $full( 'snapshot-database-tables', $this->arguments->texts( 'snapshot-database-tables' ) );
		$exclude = $full( 'snapshot-exclude-database-tables', $this->arguments->texts( 'snapshot-exclude-database-tables' ) );
		return array_values( array_filter( $all, static fn ( string $table ): bool => ( array() === $include || self::matches( $table, $include ) ) && ! self::matches( $table, $exclude ) ) );
	}

	/**
	 * Returns the rows of a table that fit the limits, and a digest; secrets are masked in both.
	 *
	 * @param string $table Name of the table.
	 * @return array<string,mixed>
	 */
	private function table( string $table ): array {
		global $wpdb;
		$digest = hash_init( 'sha256' );
		$items  = array();
		$count  = 0;
		$whole  = true;
		for ( $offset = 0; $offset < self::ROWS; $offset += 500 ) {
			$rows = $wpdb->get_results( $wpdb->prepare( 'SELECT * FROM %i ORDER BY 1 LIMIT 500 OFFSET %d', $table, $offset ), ARRAY_A ) ?: array();
			foreach ( $rows as $row ) {
				$shown = document_text( self::masked( $row ) );
				++$count;
				hash_update( $digest, $shown . "\n" );
				$this->row_bytes += strlen( $shown );
				if ( $this->row_bytes <= self::ROW_BYTES ) {
					$items[] = json_decode( $shown );
				} else {
					$whole = false;
				}
			}
			if ( count( $rows ) < 500 ) {
				break;
			}
		}
		if ( ! $whole ) {
			$this->omitted[] = sprintf( 'rows of %s: %d of %d are listed', $table, count( $items ), $count );
		}
		if ( $count >= self::ROWS ) {
			$this->omitted[] = sprintf( 'rows of %s: only the first %d are digested', $table, self::ROWS );
		}
		return array(
			'name'   => $table,
			'rows'   => $count,
			'sha256' => hash_final( $digest ),
			'items'  => $items,
		);
	}

	/**
	 * Returns a table row with its secrets masked.
	 *
	 * @param array<string,mixed> $row Row to read.
	 * @return array<string,mixed>
	 */
	private static function masked( array $row ): array {
		foreach ( $row as $column => &$value ) {
			$secret = in_array( $column, self::SECRET_COLUMNS, true )
				|| in_array( $column, array( 'option_value', 'meta_value' ), true ) && is_secret_name( (string) ( $row['option_name'] ?? $row['meta_key'] ?? '' ) );
			$value  = $secret && '' !== (string) $value ? MASK : ( is_string( $value ) ? plain_text( self::without_secrets( $value ), 65536 ) : $value );
		}
		return $row;
	}

	/**
	 * Returns a stored value. A serialized list or object that contains secrets becomes JSON with the secrets masked.
	 *
	 * @param string $value Stored string.
	 */
	private static function without_secrets( string $value ): string {
		$list = stored_value( $value );
		if ( ! is_array( $list ) && ! is_object( $list ) ) {
			return $value;
		}
		$shown = document_text( array( plain( $list, 65536 ) ) );
		return str_contains( $shown, MASK ) ? substr( $shown, 1, -1 ) : $value;
	}

	/**
	 * Returns posts by type, selected by the filter.
	 *
	 * @return list<array<string,mixed>>
	 */
	private function post_types(): array {
		global $wpdb;
		$asked = $this->arguments->texts( 'snapshot-post-types' );
		$types = sorted_texts( $wpdb->get_col( "SELECT DISTINCT post_type FROM $wpdb->posts" ) );
		foreach ( array_diff( $asked, $types, array_keys( get_post_types() ) ) as $name ) {
			throw Refusal::input( sprintf( 'snapshot-post-types names %s, but there is no such type', Arguments::shown( $name ) ) );
		}
		$found = array();
		foreach ( array() === $asked ? $types : $asked as $type ) {
			$rows    = $wpdb->get_results( $wpdb->prepare( "SELECT ID, post_title, post_name, post_status, post_content FROM $wpdb->posts WHERE post_type = %s ORDER BY ID LIMIT %d", $type, self::POSTS ), ARRAY_A ) ?: array();
			$found[] = array(
				'type'  => $type,
				'count' => (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM $wpdb->posts WHERE post_type = %s", $type ) ),
				'items' => array_map(
					static fn ( array $row ): array => array(
						'id'      => (int) $row['ID'],
						'title'   => plain_text( $row['post_title'], 500 ),
						'name'    => plain_text( $row['post_name'], 500 ),
						'status'  => $row['post_status'],
						'content' => array(
							'bytes'  => strlen( $row['post_content'] ),
							'sha256' => hash( 'sha256', $row['post_content'] ),
						),
					),
					$rows
				),
			);
		}
		return $found;
	}

	/**
	 * Checks whether a name matches one of several patterns.
	 *
	 * @param string       $name     Name to match.
	 * @param list<string> $patterns Shell patterns.
	 */
	public static function matches( string $name, array $patterns ): bool {
		foreach ( $patterns as $pattern ) {
			if ( fnmatch( $pattern, $name ) ) {
				return true;
			}
		}
		return false;
	}
}

/**
 * Returns the label that the caller gives to the recorded state.
 *
 * @param Arguments $arguments Arguments of the guest command.
 */
function state_label( Arguments $arguments ): string {
	$label = $arguments->first( 'label' );
	return '' === $label ? 'state' : cut( $label, 200 );
}
