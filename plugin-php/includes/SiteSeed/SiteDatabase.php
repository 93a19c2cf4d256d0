<?php
/**
 * Reading access to the database of this site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\SiteSeed;

use RuntimeException;

defined( 'ABSPATH' ) || exit;

/**
 * Runs SELECT statements with values separate from their text, over the connection of WordPress.
 */
final class SiteDatabase {

	/**
	 * Prefix of the site's own tables and of its keys in the table of user meta.
	 *
	 * @var string
	 */
	public readonly string $prefix;

	/** Reads the prefix of the site. */
	public function __construct() {
		global $wpdb;
		$this->prefix = $wpdb->get_blog_prefix();
	}

	/**
	 * Returns the rows of a SELECT statement; `{name}` stands for the table of this name, `?` for a value.
	 *
	 * @param string           $sql    Statement.
	 * @param list<int|string> $values Values of its placeholders.
	 * @return list<array<string, string|null>>
	 * @throws RuntimeException When the database refuses the statement.
	 */
	public function rows( string $sql, array $values = [] ): array {
		global $wpdb;
		// WordPress knows which tables the sites of a network share.
		$sql = (string) preg_replace_callback( '/\{(\w+)\}/', static fn( array $found ): string => (string) $wpdb->{$found[1]}, $sql );
		if ( [] !== $values ) {
			// phpcs:ignore WordPress.DB -- the text of the statement is a constant of SiteContent.
			$sql = (string) $wpdb->prepare( str_replace( '?', '%s', $sql ), $values );
		}
		// phpcs:ignore WordPress.DB -- read once for a run; a cache could hold what a plugin filtered.
		$rows = $wpdb->get_results( $sql, ARRAY_A );
		if ( ! is_array( $rows ) || '' !== (string) $wpdb->last_error ) {
			// The message of the server can contain names of the host.
			throw new RuntimeException( __( 'the database of this site refused a query', 'codebox' ) );
		}
		return $rows;
	}
}
