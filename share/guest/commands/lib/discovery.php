<?php
/**
 * Describes this WordPress from its own data, in parts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/addresses.php';
require_once __DIR__ . '/admin-pages.php';
require_once __DIR__ . '/inventories.php';
require_once __DIR__ . '/surfaces.php';
require_once __DIR__ . '/tables.php';
require_once __DIR__ . '/users.php';

/**
 * Describes one part of this WordPress at a time.
 */
final class Discovery {
	/** Names of the parts that can be described. */
	public const SURFACES = array( 'rest', 'admin', 'database', 'frontend', 'blocks', 'auth', 'execution', 'runtime', 'plugins', 'themes', 'content', 'users', 'abilities' );

	/**
	 * Returns the description of one part.
	 *
	 * @param string $name Name of the surface.
	 * @return array<string,mixed>
	 */
	public function surface( string $name ): array {
		return match ( $name ) {
			'rest' => rest_inventory( true ),
			'admin' => admin_inventory() + array(
				'ajaxActions' => array_column( action_rows( 'wp_ajax_' ), 'hook' ),
				'postActions' => array_column( action_rows( 'admin_post_' ), 'hook' ),
			),
			'database' => array( 'engine' => $this->runtime()['database']['engine'] ) + database_inventory( true ),
			'frontend' => frontend_inventory(),
			'blocks' => block_inventory(),
			'auth' => $this->auth(),
			'execution' => array( 'surfaces' => array_map( static fn ( array $row ): array => array_diff_key( $row, array( 'items' => 0 ) ) + array( 'names' => array_column( $row['items'], 'name' ) ), execution_surfaces() ) ),
			'runtime' => $this->runtime(),
			'plugins' => $this->plugins(),
			'themes' => $this->themes(),
			'content' => $this->content(),
			'users' => $this->users(),
			default => $this->abilities(),
		};
	}

	/**
	 * Describes WordPress, PHP and the database.
	 *
	 * @return array<string,mixed>
	 */
	private function runtime(): array {
		global $wpdb;
		$driver = $wpdb->dbh;
		$sqlite = is_object( $driver ) && method_exists( $driver, 'get_sqlite_version' );
		return array(
			'wordpress' => array(
				'version'            => wp_get_wp_version(),
				'home'               => home_url( '/' ),
				'siteUrl'            => site_url( '/' ),
				'locale'             => get_locale(),
				'multisite'          => is_multisite(),
				'environmentType'    => wp_get_environment_type(),
				'debug'              => defined( 'WP_DEBUG' ) && WP_DEBUG,
				'permalinkStructure' => (string) get_option( 'permalink_structure' ),
				'databaseVersion'    => (int) get_option( 'db_version' ),
				'objectCache'        => wp_using_ext_object_cache() ? 'external' : 'request',
			),
			'php'       => array(
				'version'     => PHP_VERSION,
				'sapi'        => PHP_SAPI,
				'memoryLimit' => (string) ini_get( 'memory_limit' ),
				'extensions'  => sorted_texts( get_loaded_extensions() ),
			),
			'database'  => array(
				'engine'  => $sqlite ? 'sqlite' : 'mysql',
				'version' => $sqlite ? $driver->get_sqlite_version() : $wpdb->db_server_info(),
				'prefix'  => $wpdb->prefix,
				'charset' => $wpdb->charset,
			),
		);
	}

	/**
	 * Lists the plugins, must-use plugins and drop-ins.
	 *
	 * @return array<string,mixed>
	 */
	private function plugins(): array {
		$rows = array();
		foreach ( get_plugins() as $file => $head ) {
			$rows[] = array(
				'file'    => $file,
				'name'    => cut( (string) $head['Name'], 200 ),
				'version' => cut( (string) $head['Version'], 50 ),
				'active'  => is_plugin_active( $file ),
				'network' => is_plugin_active_for_network( $file ),
			);
		}
		return listing( $rows, array( 'file' ) ) + array(
			'mustUse' => sorted_texts( array_keys( get_mu_plugins() ) ),
			'dropIns' => sorted_texts( array_keys( get_dropins() ) ),
		);
	}

	/**
	 * Lists the installed themes.
	 *
	 * @return array<string,mixed>
	 */
	private function themes(): array {
		$rows = array();
		foreach ( wp_get_themes( array( 'errors' => null ) ) as $stylesheet => $theme ) {
			$rows[] = array(
				'stylesheet' => (string) $stylesheet,
				'template'   => (string) $theme->get_template(),
				'name'       => cut( (string) $theme->get( 'Name' ), 200 ),
				'version'    => cut( (string) $theme->get( 'Version' ), 50 ),
				'active'     => get_stylesheet() === (string) $stylesheet,
				'block'      => $theme->is_block_theme(),
			) + ( $theme->errors() ? array( 'error' => cut( wp_strip_all_tags( $theme->errors()->get_error_message() ), 300 ) ) : array() );
		}
		return listing( $rows, array( 'stylesheet' ) );
	}

	/**
	 * Describes the content: post types and taxonomies with their numbers of entries, comments, shortcodes,
	 * blocks.
	 *
	 * @return array<string,mixed>
	 */
	private function content(): array {
		$types = array();
		foreach ( get_post_types( array(), 'objects' ) as $type ) {
			$types[] = array(
				'name'         => $type->name,
				'public'       => (bool) $type->public,
				'hierarchical' => (bool) $type->hierarchical,
				'rest'         => $type->show_in_rest ? (string) ( $type->rest_base ?: $type->name ) : null,
				'posts'        => (object) array_filter( array_map( 'intval', (array) wp_count_posts( $type->name ) ) ),
			);
		}
		$taxonomies = array();
		foreach ( get_taxonomies( array(), 'objects' ) as $taxonomy ) {
			$taxonomies[] = array(
				'name'        => $taxonomy->name,
				'public'      => (bool) $taxonomy->public,
				'objectTypes' => sorted_texts( (array) $taxonomy->object_type ),
				'terms'       => (int) wp_count_terms( array( 'taxonomy' => $taxonomy->name ) ),
			);
		}
		return array(
			'postTypes'  => listing( $types, array( 'name' ) ),
			'taxonomies' => listing( $taxonomies, array( 'name' ) ),
			'comments'   => (int) get_comment_count()['all'],
			'shortcodes' => sorted_texts( array_keys( $GLOBALS['shortcode_tags'] ?? array() ) ),
			'blocks'     => count( \WP_Block_Type_Registry::get_instance()->get_all_registered() ),
		);
	}

	/**
	 * Lists the roles with the number of users in each; no user names.
	 *
	 * @return array<string,mixed>
	 */
	private function users(): array {
		$counts = count_users();
		$roles  = array();
		foreach ( wp_roles()->roles as $name => $role ) {
			$roles[] = array(
				'name'         => (string) $name,
				'users'        => (int) ( $counts['avail_roles'][ $name ] ?? 0 ),
				'capabilities' => count( array_filter( (array) ( $role['capabilities'] ?? array() ) ) ),
			);
		}
		return array( 'total' => (int) $counts['total_users'] ) + array( 'roles' => listing( $roles, array( 'name' ) ) );
	}

	/**
	 * Describes who can log in and how: the roles, the login page and the authentication filters.
	 *
	 * @return array<string,mixed>
	 */
	private function auth(): array {
		return $this->users() + array(
			'loginUrl'                => wp_login_url(),
			'registrationOpen'        => (bool) get_option( 'users_can_register' ),
			'defaultRole'             => (string) get_option( 'default_role' ),
			'applicationPasswords'    => wp_is_application_passwords_available(),
			'authenticationCallbacks' => array_column( hook_callbacks( 'authenticate' ), 'callback' ),
			'administrator'           => Users::row( Users::administrator() ),
		);
	}

	/**
	 * Lists the abilities that WordPress and plugins have registered.
	 *
	 * @return array<string,mixed>
	 */
	private function abilities(): array {
		if ( ! function_exists( 'wp_get_abilities' ) ) {
			return array( 'available' => false );
		}
		$rows = array();
		foreach ( wp_get_abilities() as $ability ) {
			$rows[] = array(
				'name'     => $ability->get_name(),
				'category' => $ability->get_category(),
				'label'    => cut( $ability->get_label(), 200 ),
			);
		}
		return array( 'available' => true ) + listing( $rows, array( 'name' ) );
	}
}
