<?php
/**
 * Reports parts (sections) of the guest's WordPress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Personal data (names, addresses) is reported only to a trusted caller; options are reported only when
 * requested by name.
 */
final class State_Observation {
	/** Names of the sections that can be requested. */
	public const SECTIONS = array( 'summary', 'plugins', 'themes', 'options', 'users', 'posts', 'tables' );

	/** User fields without personal data; every caller may request them. */
	private const SAFE_FIELDS = array( 'ID', 'roles', 'user_registered' );

	/** User fields that can be requested. */
	private const FIELDS = array( 'ID', 'roles', 'user_registered', 'user_login', 'user_email', 'display_name', 'user_nicename', 'user_url' );

	/** Maximum number of rows per section. */
	private const ROWS = 500;

	/**
	 * Creates the reader.
	 *
	 * @param bool         $safe    Whether personal data is hidden.
	 * @param list<string> $options Names of the requested options.
	 * @param list<string> $fields  Names of the requested user fields.
	 */
	public function __construct( private readonly bool $safe, private readonly array $options, private readonly array $fields ) {}

	/**
	 * Returns the requested sections.
	 *
	 * @param list<string> $sections Section names; empty for the summary.
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
				default   => throw Refusal::input( "there is no section $section; available: " . implode( ', ', self::SECTIONS ) ),
			};
		}
		return $seen;
	}

	/** Returns a short description of the site. */
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

	/** Lists plugins and whether they are active. */
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

	/** Returns options by name; null for a missing option. */
	private function options(): array {
		$rows = array();
		foreach ( $this->options as $name ) {
			$value         = get_option( $name, null );
			$rows[ $name ] = $this->safe && is_string( $value ) && is_email( $value ) ? '(an address)' : $value;
		}
		return $rows;
	}

	/** Lists users; fields with personal data require a trusted caller. */
	private function users(): array {
		$wanted = array() === $this->fields ? array( 'ID', 'roles' ) : $this->fields;
		foreach ( $wanted as $field ) {
			if ( ! in_array( $field, self::FIELDS, true ) ) {
				throw Refusal::input( "users have no field $field to observe" );
			}
			if ( $this->safe && ! in_array( $field, self::SAFE_FIELDS, true ) ) {
				throw Refusal::input( "$field is personal data: request it with redaction none, or leave it out" );
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

	/** Counts posts by type and status. */
	private function posts(): array {
		$rows = array();
		foreach ( get_post_types() as $type ) {
			$rows[ $type ] = array_filter( array_map( 'intval', (array) wp_count_posts( $type ) ) );
		}
		return array_filter( $rows );
	}

	/** Lists tables with row counts. */
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
