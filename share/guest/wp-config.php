<?php
/**
 * WordPress configuration inside a guest.
 *
 * For each template, the placeholders are replaced: keys and salts by new random values, user and host by those
 * of its database. No value comes from the parent site's configuration. A program that loads WordPress may define
 * constants before it loads this file.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', '@db_user@' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', '@db_host@' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );

define( 'AUTH_KEY', '@salt@' );
define( 'SECURE_AUTH_KEY', '@salt@' );
define( 'LOGGED_IN_KEY', '@salt@' );
define( 'NONCE_KEY', '@salt@' );
define( 'AUTH_SALT', '@salt@' );
define( 'SECURE_AUTH_SALT', '@salt@' );
define( 'LOGGED_IN_SALT', '@salt@' );
define( 'NONCE_SALT', '@salt@' );

$table_prefix = 'wp_';

// Constants of the recipe, if any.
if ( is_file( rtrim( dirname( __DIR__ ), '/' ) . '/run/codebox/staged/recipe/settings.php' ) ) {
	require rtrim( dirname( __DIR__ ), '/' ) . '/run/codebox/staged/recipe/settings.php';
}

// Constants of the multisite network that a recipe created.
if ( is_file( __DIR__ . '/wp-content/codebox-network.php' ) ) {
	require __DIR__ . '/wp-content/codebox-network.php';
}

defined( 'WP_ENVIRONMENT_TYPE' ) || define( 'WP_ENVIRONMENT_TYPE', 'development' );
defined( 'WP_DEBUG' ) || define( 'WP_DEBUG', false );
define( 'FS_METHOD', 'direct' );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'DISABLE_WP_CRON', true );

// The socket of the egress bridge is the only network access. Without the socket, every external request
// would wait until its timeout.
defined( 'WP_HTTP_BLOCK_EXTERNAL' )
	|| define( 'WP_HTTP_BLOCK_EXTERNAL', ! file_exists( '/run/codebox/egress.sock' ) );
defined( 'WP_ACCESSIBLE_HOSTS' ) || define( 'WP_ACCESSIBLE_HOSTS', 'localhost,127.0.0.1' );

defined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );

require_once ABSPATH . 'wp-settings.php';
