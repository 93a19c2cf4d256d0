<?php
/**
 * Loads the files that guests load most often, to fill the template's opcode cache.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';

foreach ( array( 'plugin', 'file', 'misc', 'upgrade', 'user', 'taxonomy', 'post', 'theme', 'admin', 'image', 'media' ) as $name ) {
	$file = ABSPATH . 'wp-admin/includes/' . $name . '.php';
	if ( is_readable( $file ) ) {
		require_once $file;
	}
}

if ( ! is_blog_installed() ) {
	fwrite( STDERR, "WordPress is not installed.\n" );
	exit( 1 );
}

echo "warm\n";
