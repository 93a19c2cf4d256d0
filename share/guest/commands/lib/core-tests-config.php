<?php
/**
 * Configuration of WordPress's own tests inside a guest: uses the guest's WordPress and database, with a
 * separate table prefix.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || define( 'ABSPATH', rtrim( dirname( __DIR__, 5 ), '/' ) . '/wordpress/' );
defined( 'WP_DEFAULT_THEME' ) || define( 'WP_DEFAULT_THEME', 'default' );
defined( 'WP_DEBUG' ) || define( 'WP_DEBUG', true );

// The settings of wp-config.php: MariaDB if the guest has it, else SQLite, which needs none.
$codebox_mariadb = is_dir( ABSPATH . 'wp-content/database/mariadb' );

define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', $codebox_mariadb ? 'agent' : '' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', $codebox_mariadb ? 'localhost:/run/mysqld/mysqld.sock' : '' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );

define( 'WP_TESTS_DOMAIN', 'example.org' );
define( 'WP_TESTS_EMAIL', 'admin@example.org' );
define( 'WP_TESTS_TITLE', 'Test Blog' );
define( 'WP_PHP_BINARY', PHP_BINARY );
define( 'WPLANG', '' );

$table_prefix = 'wptests_';
