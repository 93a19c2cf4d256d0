<?php
/**
 * Lists what this WordPress has registered: routes, pages, tables, addresses, blocks, roles.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/listing.php';

/**
 * Returns a listing with its items under a name of their own.
 *
 * @param string              $name    Name of the list.
 * @param array<string,mixed> $listing Result of listing().
 * @return array<string,mixed>
 */
function listed( string $name, array $listing ): array {
	return array( $name => $listing['items'] ) + array_diff_key( $listing, array( 'items' => 0 ) );
}

/**
 * Lists the REST routes with methods and arguments, and the namespaces.
 *
 * @param bool $brief Whether only route, namespace and methods are listed.
 * @return array<string,mixed>
 */
function rest_inventory( bool $brief = false ): array {
	$server = rest_get_server();
	$rows   = array();
	foreach ( $server->get_routes() as $route => $handlers ) {
		$options   = (array) $server->get_route_options( $route );
		$endpoints = array_map( rest_endpoint( ... ), array_values( $handlers ) );
		$rows[]    = array(
			'route'     => (string) $route,
			'namespace' => (string) ( $options['namespace'] ?? '' ),
			'methods'   => sorted_texts( array_merge( array(), ...array_column( $endpoints, 'methods' ) ) ),
		) + ( $brief ? array() : array( 'endpoints' => $endpoints ) );
	}
	return array( 'namespaces' => sorted_texts( $server->get_namespaces() ) ) + listed( 'routes', listing( $rows, array( 'route' ), 500 ) );
}

/**
 * Describes one endpoint of a REST route.
 *
 * @param array<string,mixed> $handler Endpoint as WordPress has registered it.
 * @return array<string,mixed>
 */
function rest_endpoint( array $handler ): array {
	$arguments = array();
	foreach ( array_slice( (array) ( $handler['args'] ?? array() ), 0, 100, true ) as $name => $about ) {
		$about       = (array) $about;
		$arguments[] = array_filter(
			array(
				'name'     => (string) $name,
				'required' => ! empty( $about['required'] ),
				'type'     => $about['type'] ?? null,
				'enum'     => isset( $about['enum'] ) ? array_slice( array_values( (array) $about['enum'] ), 0, 50 ) : null,
			),
			static fn ( $value ): bool => null !== $value
		);
	}
	return array(
		'methods'    => sorted_texts( array_keys( array_filter( (array) ( $handler['methods'] ?? array() ) ) ) ),
		'callback'   => callback_name( $handler['callback'] ?? null ),
		'permission' => isset( $handler['permission_callback'] ) ? callback_name( $handler['permission_callback'] ) : null,
		'arguments'  => $arguments,
	);
}

/**
 * Lists the pages of the admin menu. WordPress must be loaded as for a page of the admin area.
 *
 * @return array<string,mixed>
 */
function admin_inventory(): array {
	return array(
		'adminUrl'   => admin_url(),
		'menuLoaded' => ! empty( $GLOBALS['menu'] ),
	) + listed( 'pages', listing( admin_pages(), array( 'path', 'title' ), 500 ) );
}

/**
 * Lists the tables, and the numbers of tables and rows.
 *
 * @param bool $brief Whether only name, origin and number of rows are listed.
 * @return array<string,mixed>
 */
function database_inventory( bool $brief = false ): array {
	$facts = array_map( table_facts( ... ), table_names() );
	$rows  = $brief ? array_map( static fn ( array $table ): array => array_diff_key( $table, array_flip( array( 'columns', 'indexes' ) ) ), $facts ) : $facts;
	return array( 'prefix' => $GLOBALS['wpdb']->prefix ) + listed( 'tables', listing( $rows, array( 'name' ) ) ) + array(
		'totals' => array(
			'tables' => count( $facts ),
			'core'   => count( array_filter( array_column( $facts, 'core' ) ) ),
			'rows'   => array_sum( array_column( $facts, 'rows' ) ),
		),
	);
}

/**
 * Lists the URLs of the front end, the rewrite rules and the public query variables.
 *
 * @return array<string,mixed>
 */
function frontend_inventory(): array {
	$rules = array();
	foreach ( array_slice( (array) ( $GLOBALS['wp_rewrite']->wp_rewrite_rules() ?: array() ), 0, 1000, true ) as $pattern => $target ) {
		$rules[] = array(
			'pattern' => (string) $pattern,
			'target'  => (string) $target,
		);
	}
	return array( 'homeUrl' => home_url( '/' ) ) + listed( 'urls', listing( addresses(), array( 'kind', 'url' ), 1000 ) ) + array(
		'rewriteRules'    => $rules,
		'publicQueryVars' => sorted_texts( $GLOBALS['wp']->public_query_vars ?? array() ),
	);
}

/**
 * Lists the registered block types.
 *
 * @return array<string,mixed>
 */
function block_inventory(): array {
	$rows = array();
	foreach ( \WP_Block_Type_Registry::get_instance()->get_all_registered() as $block ) {
		$rows[] = array(
			'name'       => $block->name,
			'dynamic'    => $block->is_dynamic(),
			'category'   => $block->category,
			'attributes' => count( $block->get_attributes() ),
		);
	}
	return listed( 'blockTypes', listing( $rows, array( 'name' ) ) );
}
