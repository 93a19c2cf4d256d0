<?php
/**
 * Installs WordPress into an empty database when a template is built.
 *
 * Runs inside a guest. The administrator gets a random password that is not stored: programs in a guest act
 * through WP-CLI or wp_set_current_user().
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

define( 'WP_INSTALLING', true );
define( 'WP_SITEURL', 'http://localhost' );

$_SERVER['HTTP_HOST']       = 'localhost';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
$_SERVER['REQUEST_METHOD']  = 'GET';
$_SERVER['REQUEST_URI']     = '/';

// This file is at /opt/codebox/guest below the guest's root, wherever the root is on the file system.
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

if ( is_blog_installed() ) {
	fwrite( STDERR, "WordPress is installed already.\n" );
	exit( 1 );
}

$result = wp_install( 'Codebox', 'admin', 'admin@example.org', false, '', bin2hex( random_bytes( 24 ) ) );

if ( ! is_array( $result ) || ! is_blog_installed() ) {
	fwrite( STDERR, "WordPress could not be installed.\n" );
	exit( 1 );
}

update_option( 'blog_public', '0' );
update_option( 'home', 'http://localhost' );
update_option( 'siteurl', 'http://localhost' );

// Closes the connection, because an open one could leave a journal file beside the database.
$GLOBALS['wpdb']->close();

echo "installed\n";
