<?php
/**
 * Loads WordPress like a page of the admin area, as the first administrator.
 *
 * A program must require it in the global scope, where WordPress builds the menu.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

define( 'WP_ADMIN', true );
define( 'WP_NETWORK_ADMIN', false );
define( 'WP_USER_ADMIN', false );
define( 'WP_BLOG_ADMIN', true );
null === Entry::$arguments && begin();
require wordpress( '/wp-admin/index.php' );
$GLOBALS['pagenow'] = 'index.php';
wp_set_current_user( 1 );
require_once ABSPATH . 'wp-admin/includes/admin.php';
require ABSPATH . 'wp-admin/menu.php';
