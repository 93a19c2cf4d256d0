<?php
/**
 * Lists the actions, forms and links of the admin area.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/admin-pages.php';
require_once __DIR__ . '/inventories.php';
require_once __DIR__ . '/surfaces.php';

/**
 * Lists the actions that requests to the admin area can trigger, and forms and links of its pages.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @return array<string,mixed> Result document.
 */
function admin_actions( Arguments $arguments ): array {
	$name  = $arguments->has( 'max_pages' ) ? 'max_pages' : 'max-pages';
	$most  = $arguments->number( $name, 10, 0, PHP_INT_MAX );
	$pages = plugin_pages_first();
	$found = array();
	$rows  = array();
	foreach ( $pages as $index => $page ) {
		$html   = $index < $most ? admin_page_html( $page['path'] ) : null;
		$rows[] = array_intersect_key( $page, array_flip( array( 'path', 'title', 'source' ) ) ) + array( 'status' => $index >= $most ? 'skipped' : ( null === $html ? 'failed' : 'loaded' ) );
		foreach ( null === $html ? array() : page_actions( $html, $page['path'] ) as $row ) {
			$found[ implode( "\0", array( $row['kind'], $row['method'], $row['target'], $row['action'] ) ) ] ??= $row;
		}
	}
	$hooks = array();
	foreach ( array( 'ajax' => 'wp_ajax_', 'admin-post' => 'admin_post_' ) as $kind => $prefix ) {
		foreach ( action_rows( $prefix ) as $row ) {
			$hooks[] = array( 'kind' => $kind, 'action' => $row['name'] ) + $row;
		}
	}
	$actions = listing( array( ...$hooks, ...array_values( $found ) ), array( 'kind', 'action', 'target', 'page' ), 2000 );
	return result( 'wordpress-admin-action-inventory' ) + array(
		'adminUrl'    => admin_url(),
		'menuLoaded'  => ! empty( $GLOBALS['menu'] ),
		'pages'       => $rows,
	) + listed( 'actions', $actions ) + array(
		'totals'      => array( 'pages' => count( $rows ) ) + array_count_values( array_column( $rows, 'status' ) ) + array_count_values( array_column( $actions['items'], 'kind' ) ),
		'redaction'   => array(
			'values' => 'omitted',
			'note'   => 'values of fields and of query parameters are left out, names are listed',
		),
		'diagnostics' => array_values(
			array_map(
				static fn ( array $row ): array => array(
					'code'    => 'page-failed',
					'message' => "the page {$row['path']} was not rendered; wordpress.simulated-admin-page-load shows why",
				),
				array_filter( $rows, static fn ( array $row ): bool => 'failed' === $row['status'] )
			)
		),
	);
}

/**
 * Returns the HTML of a page rendered in its own process; null on failure.
 *
 * @param string $path Path of the page.
 */
function admin_page_html( string $path ): ?string {
	$pipes   = array();
	$process = proc_open(
		array( PHP_BINARY, '-d', 'memory_limit=' . ini_get( 'memory_limit' ), dirname( __DIR__ ) . '/simulated-admin-page-load.php' ),
		// The page goes to standard output; the result document, on descriptor 3, is discarded.
		array( array( 'pipe', 'r' ), array( 'pipe', 'w' ), array( 'file', '/dev/null', 'w' ), array( 'file', '/dev/null', 'w' ) ),
		$pipes,
		null,
		array( 'CODEBOX_COMMAND_DOCUMENT' => '3' ) + getenv()
	);
	if ( ! is_resource( $process ) ) {
		return null;
	}
	fwrite( $pipes[0], document_text( array( 'command' => 'wordpress.simulated-admin-page-load', 'args' => array( 'path' => $path ) ) ) );
	fclose( $pipes[0] );
	$html = '';
	while ( ! feof( $pipes[1] ) ) {
		$piece = (string) fread( $pipes[1], 65536 );
		$html .= substr( $piece, 0, max( 0, ( 4 << 20 ) - strlen( $html ) ) );
	}
	fclose( $pipes[1] );
	proc_close( $process );
	return str_contains( $html, '<form' ) || str_contains( $html, '</html>' ) ? $html : null;
}

/**
 * Returns forms of a page, and links that trigger an action.
 *
 * @param string $html HTML of the page.
 * @param string $page Path of the page.
 * @return list<array<string,mixed>>
 */
function page_actions( string $html, string $page ): array {
	libxml_use_internal_errors( true );
	$document = new \DOMDocument();
	$document->loadHTML( '<?xml encoding="utf-8"?>' . $html, LIBXML_NONET );
	$search = new \DOMXPath( $document );
	$rows   = array();
	foreach ( $search->query( '//form' ) ?: array() as $form ) {
		$fields = array();
		$action = '';
		foreach ( $search->query( './/*[@name]', $form ) ?: array() as $field ) {
			$name            = cut( $field->getAttribute( 'name' ), 100 );
			$fields[ $name ] = $name;
			if ( 'action' === $name && 'input' === $field->tagName ) {
				$action = cut( $field->getAttribute( 'value' ), 200 );
			}
		}
		$rows[] = array(
			'kind'   => 'form',
			'page'   => $page,
			'method' => strtoupper( $form->getAttribute( 'method' ) ) ?: 'GET',
			'target' => admin_target( $form->getAttribute( 'action' ) ?: $page ),
			'action' => $action,
			'nonce'  => array() !== preg_grep( '/nonce/i', $fields ),
			'fields' => sorted_texts( $fields, 100 ),
		);
	}
	foreach ( $search->query( '//a[contains(@href,"action=")]' ) ?: array() as $link ) {
		parse_str( (string) parse_url( $link->getAttribute( 'href' ), PHP_URL_QUERY ), $query );
		if ( is_string( $query['action'] ?? null ) && '' !== $query['action'] ) {
			$rows[] = array(
				'kind'   => 'link',
				'page'   => $page,
				'method' => 'GET',
				'target' => admin_target( $link->getAttribute( 'href' ) ),
				'action' => cut( $query['action'], 200 ),
				'nonce'  => array() !== preg_grep( '/nonce/i', array_keys( $query ) ),
				'fields' => sorted_texts( array_keys( $query ), 100 ),
			);
		}
	}
	return $rows;
}

/**
 * Returns the target of a form or link, without the values of its parameters.
 *
 * @param string $address URL of the form or link.
 */
function admin_target( string $address ): string {
	$path = (string) parse_url( $address, PHP_URL_PATH );
	return cut( str_starts_with( $path, '/' ) ? $path : '/wp-admin/' . $path, 500 );
}
