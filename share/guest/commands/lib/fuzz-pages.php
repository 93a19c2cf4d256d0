<?php
/**
 * Loads the screens of wp-admin and reports faults.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/admin-pages.php';
require_once __DIR__ . '/page.php';
require_once __DIR__ . '/processes.php';

/** Number of screens that are loaded when the caller names none. */
const FUZZ_PAGES = 25;

/**
 * Loads each screen with each method, in a process of its own, as the first administrator.
 *
 * @param Arguments $arguments Arguments safe_methods, max-pages, max_pages, capture-diagnostics.
 * @return array<string,mixed> `wp-codebox/wordpress-admin-page-coverage/v1`.
 */
function fuzz_admin_pages( Arguments $arguments ): array {
	$methods = array_map( 'strtoupper', $arguments->texts( 'safe_methods' ) );
	$methods = array() === $methods ? array( 'GET' ) : array_values( array_unique( $methods ) );
	$unsafe  = array_diff( $methods, array( 'GET', 'HEAD', 'OPTIONS' ) );
	if ( array() !== $unsafe ) {
		throw Refusal::input( sprintf( 'safe_methods has %s, but only GET, HEAD and OPTIONS are safe', Arguments::shown( reset( $unsafe ) ) ) );
	}
	$most      = $arguments->number( $arguments->has( 'max_pages' ) ? 'max_pages' : 'max-pages', FUZZ_PAGES, 1, PHP_INT_MAX );
	$queries   = records_queries( $arguments );
	$pages     = array();
	$coverage  = array();
	foreach ( plugin_pages_first() as $index => $page ) {
		$rows     = $index < $most ? array_map( static fn ( string $method ): array => fuzzed_page( $page['path'], $method, $queries ), $methods ) : array();
		$coverage = array( ...$coverage, ...$rows );
		$worst    = array_column( $rows, 'status' );
		$pages[]  = array_intersect_key( $page, array_flip( array( 'path', 'title', 'capability', 'source' ) ) ) + array(
			'status' => array() === $rows ? 'skipped' : ( in_array( 'error', $worst, true ) ? 'error' : 'ok' ),
		);
	}
	$errors = array_values( array_filter( $coverage, static fn ( array $row ): bool => 'error' === $row['status'] ) );
	return result( 'wordpress-admin-page-coverage', array() === $errors ? 'ok' : 'error' ) + array(
		'adminUrl'    => admin_url(),
		'menuLoaded'  => ! empty( $GLOBALS['menu'] ),
		'safeMethods' => $methods,
		'pages'       => $pages,
		'coverage'    => $coverage,
		'totals'      => array(
			'pages'  => count( $pages ),
			'loads'  => count( $coverage ),
			'errors' => count( $errors ),
		),
		'diagnostics' => array_map(
			static fn ( array $row ): array => array(
				'code'    => 'page-error',
				'message' => "{$row['method']} {$row['path']} had the outcome {$row['outcome']} and " . ( null === $row['httpStatus'] ? 'no HTTP status' : "the HTTP status {$row['httpStatus']}" ) . '; its row in coverage lists the errors',
			),
			array_slice( $errors, 0, 100 )
		),
	);
}

/**
 * Loads one screen and describes the outcome.
 *
 * @param string $path    Path of the screen.
 * @param string $method  HTTP method.
 * @param bool   $queries Whether the database queries are listed.
 * @return array<string,mixed>
 */
function fuzzed_page( string $path, string $method, bool $queries ): array {
	$call  = array(
		'command' => 'wordpress.simulated-admin-page-load',
		'args'    => array(
			'path'                => $path,
			'method'              => $method,
			'capture-diagnostics' => $queries ? 'wpdb-queries' : 'false',
		),
	);
	$ended = process( array( PHP_BINARY, '-d', 'memory_limit=' . ini_get( 'memory_limit' ), dirname( __DIR__ ) . '/simulated-admin-page-load.php' ), document_text( $call ), array(), 1 << 20 );
	$page  = json_decode( $ended['stdout'], true );
	$page  = is_array( $page ) ? $page : array();
	return array(
		'path'        => $path,
		'method'      => $method,
		// A page that the supervisor of its process reports as failed has no status of its own.
		'status'      => isset( $page['error'] ) ? 'error' : (string) ( $page['status'] ?? 'error' ),
		'httpStatus'  => $page['http']['status'] ?? null,
		'outcome'     => (string) ( $page['outcome'] ?? 'failed' ),
		'title'       => $page['title'] ?? null,
		'notices'     => $page['notices'] ?? array(),
		'errors'      => $page['errors'] ?? array( $page['error'] ?? array( 'code' => 'wp_codebox_command_failed', 'message' => 'the process of the page printed no result' ) ),
		'performance' => (object) ( $page['performance'] ?? array() ),
	) + ( $queries ? array( 'queries' => $page['diagnostics']['queries'] ?? null ) : array() ) + ( isset( $page['redirect'] ) ? array( 'redirect' => $page['redirect']['location'] ) : array() );
}
