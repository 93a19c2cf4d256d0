<?php
/**
 * Sections of the guest's WordPress, as an observation shows them.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * What identifies people (names, addresses) is shown only where the caller is trusted with it;
 * options only by name.
 */
final class State_Seen {
	/** Sections by name. */
	public const SECTIONS = array( 'summary', 'plugins', 'themes', 'options', 'users', 'posts', 'tables' );

	/** Fields of users that are nobody's name. */
	private const SAFE_FIELDS = array( 'ID', 'roles', 'user_registered' );

	/** Fields of users there are. */
	private const FIELDS = array( 'ID', 'roles', 'user_registered', 'user_login', 'user_email', 'display_name', 'user_nicename', 'user_url' );

	/** Rows of a section. */
	private const ROWS = 500;

	/**
	 * Wires it.
	 *
	 * @param bool         $safe    Whether people stay unnamed.
	 * @param list<string> $options Options that are shown.
	 * @param list<string> $fields  Fields of users that are shown.
	 */
	public function __construct( private readonly bool $safe, private readonly array $options, private readonly array $fields ) {}

	/**
	 * Looks.
	 *
	 * @param list<string> $sections Sections; none: the summary.
	 * @return array<string,mixed>
	 */
	public function look( array $sections ): array {
		$seen = array();
		foreach ( array() === $sections ? array( 'summary' ) : $sections as $section ) {
			$seen[ $section ] = match ( $section ) {
				'summary' => $this->summary(),
				'plugins' => $this->plugins(),
				'themes'  => array_keys( wp_get_themes() ),
				'options' => $this->options(),
				'users'   => $this->users(),
				'posts'   => $this->posts(),
				'tables'  => $this->tables(),
				default   => throw Refusal::input( "there is no section $section; there are " . implode( ', ', self::SECTIONS ) ),
			};
		}
		return $seen;
	}

	/** The site in a few words. */
	private function summary(): array {
		return array(
			'wordpress'     => get_bloginfo( 'version' ),
			'php'           => PHP_VERSION,
			'home'          => home_url(),
			'theme'         => get_stylesheet(),
			'activePlugins' => array_values( (array) get_option( 'active_plugins', array() ) ),
			'multisite'     => is_multisite(),
			'users'         => (int) count_users()['total_users'],
		);
	}

	/** Plugins and whether they are active. */
	private function plugins(): array {
		require_once ABSPATH . 'wp-admin/includes/plugin.php';
		$rows = array();
		foreach ( get_plugins() as $file => $plugin ) {
			$rows[] = array(
				'file'    => $file,
				'version' => (string) $plugin['Version'],
				'active'  => is_plugin_active( $file ),
			);
		}
		return $rows;
	}

	/** Options by name; null where there is none. */
	private function options(): array {
		$rows = array();
		foreach ( $this->options as $name ) {
			$value         = get_option( $name, null );
			$rows[ $name ] = $this->safe && is_string( $value ) && is_email( $value ) ? '(an address)' : $value;
		}
		return $rows;
	}

	/** Users; a field that names somebody needs a caller who is trusted with it. */
	private function users(): array {
		$wanted = array() === $this->fields ? array( 'ID', 'roles' ) : $this->fields;
		foreach ( $wanted as $field ) {
			if ( ! in_array( $field, self::FIELDS, true ) ) {
				throw Refusal::input( "users have no field $field to observe" );
			}
			if ( $this->safe && ! in_array( $field, self::SAFE_FIELDS, true ) ) {
				throw Refusal::input( "$field names somebody: ask with redaction none, or leave it out" );
			}
		}
		$rows = array();
		foreach ( get_users( array( 'number' => self::ROWS, 'orderby' => 'ID' ) ) as $user ) {
			$row = array();
			foreach ( $wanted as $field ) {
				$row[ $field ] = 'roles' === $field ? array_values( $user->roles ) : $user->$field;
			}
			$rows[] = $row;
		}
		return $rows;
	}

	/** How many posts of each type and status. */
	private function posts(): array {
		$rows = array();
		foreach ( get_post_types() as $type ) {
			$rows[ $type ] = array_filter( array_map( 'intval', (array) wp_count_posts( $type ) ) );
		}
		return array_filter( $rows );
	}

	/** Tables and their rows. */
	private function tables(): array {
		global $wpdb;
		$rows = array();
		foreach ( array_slice( $wpdb->get_col( 'SHOW TABLES' ), 0, self::ROWS ) as $table ) {
			// phpcs:ignore WordPress.DB.PreparedSQL -- a name that the database itself gave.
			$rows[ $table ] = (int) $wpdb->get_var( 'SELECT COUNT(*) FROM `' . str_replace( '`', '``', $table ) . '`' );
		}
		return $rows;
	}
}
