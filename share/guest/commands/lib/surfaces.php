<?php
/**
 * Lists the entry points through which requests can run WordPress's code.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/listing.php';

/**
 * Lists the entry points by kind, with the callbacks of each.
 *
 * @return list<array<string,mixed>>
 */
function execution_surfaces(): array {
	$rest = array();
	foreach ( rest_get_server()->get_routes() as $route => $endpoints ) {
		$rest[] = array( 'name' => (string) $route );
	}
	$cron = array();
	foreach ( _get_cron_array() ?: array() as $time => $hooks ) {
		foreach ( $hooks as $hook => $events ) {
			foreach ( $events as $event ) {
				$cron[] = array(
					'name'      => (string) $hook,
					'schedule'  => (string) ( $event['schedule'] ?: 'once' ),
					'callbacks' => array_column( hook_callbacks( (string) $hook ), 'callback' ),
				);
			}
		}
	}
	$blocks = array();
	foreach ( \WP_Block_Type_Registry::get_instance()->get_all_registered() as $block ) {
		if ( $block->is_dynamic() ) {
			$blocks[] = array(
				'name'     => $block->name,
				'callback' => callback_name( $block->render_callback ),
			);
		}
	}
	$codes = array();
	foreach ( $GLOBALS['shortcode_tags'] ?? array() as $tag => $callback ) {
		$codes[] = array(
			'name'     => (string) $tag,
			'callback' => callback_name( $callback ),
		);
	}
	$abilities = array();
	foreach ( function_exists( 'wp_get_abilities' ) ? wp_get_abilities() : array() as $ability ) {
		$abilities[] = array( 'name' => $ability->get_name() );
	}
	require_once ABSPATH . WPINC . '/class-IXR.php';
	require_once ABSPATH . WPINC . '/class-wp-xmlrpc-server.php';
	$methods = array();
	foreach ( apply_filters( 'xmlrpc_methods', ( new \wp_xmlrpc_server() )->methods ?? array() ) as $method => $callback ) {
		$methods[] = array( 'name' => (string) $method );
	}
	$rows = array();
	foreach ( array(
		'ability'       => array( $abilities, 'wordpress.ability' ),
		'admin-ajax'    => array( action_rows( 'wp_ajax_' ), 'wordpress.admin-action' ),
		'admin-post'    => array( action_rows( 'admin_post_' ), 'wordpress.admin-action' ),
		'block-render'  => array( $blocks, 'wordpress.block-render' ),
		'cron'          => array( $cron, 'wordpress.invoke-cron-event' ),
		'rest'          => array( $rest, 'wordpress.rest-request' ),
		'shortcode'     => array( $codes, 'wordpress.block-render' ),
		'xmlrpc'        => array( $methods, 'wordpress.http-request' ),
	) as $kind => $surface ) {
		$rows[] = array(
			'kind'    => $kind,
			'command' => $surface[1],
		) + listing( $surface[0], array( 'name' ), 500 );
	}
	return $rows;
}

/**
 * Lists actions that a request can name, by hook prefix.
 *
 * @param string $prefix Prefix: wp_ajax_ or admin_post_.
 * @return list<array<string,mixed>>
 */
function action_rows( string $prefix ): array {
	$rows = array();
	foreach ( hooks_with_prefix( $prefix ) as $hook ) {
		$action = substr( $hook, strlen( $prefix ) );
		$public = str_starts_with( $action, 'nopriv_' );
		$rows[] = array(
			'name'      => $public ? substr( $action, 7 ) : $action,
			'hook'      => $hook,
			'loggedIn'  => ! $public,
			'callbacks' => array_column( hook_callbacks( $hook ), 'callback' ),
		);
	}
	return $rows;
}
