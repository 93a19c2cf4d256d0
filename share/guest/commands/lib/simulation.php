<?php
/**
 * Renders a page without a web server.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/page.php';

/**
 * Prepares the requested page and returns the file that loads WordPress.
 *
 * @param string $surface Surface: admin or frontend.
 */
function simulate( string $surface ): string {
	try {
		$arguments = Entry::$arguments;
		$admin     = 'admin' === $surface;
		$target    = page_target( $arguments, $admin ? '/wp-admin/index.php' : '/' );
		$method    = $arguments->word( 'method', array( 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS' ), $arguments->has( 'body-json' ) ? 'POST' : 'GET' );
		$body      = $arguments->object( 'body-json' );
		$user      = $arguments->text( 'user', $admin && ! $arguments->has( 'session' ) ? ADMINISTRATOR : '' );
		// PHP reads the fields of a form only from the body of a POST request.
		if ( array() !== $body && 'POST' !== $method ) {
			throw Refusal::input( "body-json needs method POST, not $method" );
		}
		if ( $admin ) {
			$target = '/wp-admin/' . basename( admin_file( $target ) ) . ( str_contains( $target, '?' ) ? strstr( $target, '?' ) : '' );
		} elseif ( 1 === preg_match( '~^/(?:wp-admin(?:/|$)|wp-content/|wp-includes/|(?!index\.php)[^/?]+\.php(?:[/?]|$))~', $target ) ) {
			throw Refusal::input( "$target is not a front-end page; wordpress.simulated-admin-page-load renders admin pages, wordpress.server-page-load any file" );
		}
		$diagnostics = records_queries( $arguments );
		$expected    = $arguments->has( 'expect-status' ) ? $arguments->number( 'expect-status', 200, 100, 599 ) : null;
		$asked       = log_in( $user, $arguments->text( 'session' ) );
		$request     = new Page_Request( $surface, $method, $target, 'POST' === $method ? $body : null, ADMINISTRATOR === $user ? '' : $user, $arguments->text( 'session' ) );
		new Page( $request, $asked, $expected, $diagnostics, new Watch() );
	} catch ( Refusal $refusal ) {
		finish( static fn () => throw $refusal );
	}
	$file                   = wordpress( $target, $method );
	$_POST                  = $body;
	$_REQUEST               = $_POST + $_GET;
	$_SERVER['SCRIPT_NAME'] = $admin ? strtok( $target, '?' ) : '/index.php';
	$_SERVER['PHP_SELF']    = $_SERVER['SCRIPT_NAME'];
	if ( array() !== $body ) {
		$_SERVER['CONTENT_TYPE'] = 'application/x-www-form-urlencoded';
	}
	// The page's own scripts define these constants before WordPress loads; this program loads WordPress first.
	define( $admin ? 'WP_ADMIN' : 'WP_USE_THEMES', true );
	if ( 'admin-ajax.php' === basename( $_SERVER['SCRIPT_NAME'] ) && $admin ) {
		define( 'DOING_AJAX', true );
	}
	print_page();
	return $file;
}

/**
 * Returns the file of wp-admin that a request names.
 *
 * @param string $target Path and query: /wp-admin/edit.php?… or edit.php?….
 */
function admin_file( string $target ): string {
	$name = ltrim( (string) preg_replace( '~^/wp-admin(?=/|$)~', '', (string) strtok( $target, '?' ) ), '/' );
	$file = root() . '/wordpress/wp-admin/' . ( '' === $name ? 'index.php' : $name );
	if ( 1 !== preg_match( '/^(?:[a-z0-9-]+\.php)?$/D', $name ) || ! is_file( $file ) ) {
		throw Refusal::input( sprintf( 'there is no page %s in the admin area; wordpress.admin-page-inventory lists them', Arguments::shown( $target ) ) );
	}
	return $file;
}
