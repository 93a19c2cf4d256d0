<?php
/**
 * Command `wordpress.admin-page-inventory`: pages of the admin menu as the administrator has it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/admin-pages.php';

define( 'WP_ADMIN', true );
define( 'WP_NETWORK_ADMIN', false );
define( 'WP_USER_ADMIN', false );
define( 'WP_BLOG_ADMIN', true );
WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress( '/wp-admin/index.php' );
$GLOBALS['pagenow'] = 'index.php';
wp_set_current_user( 1 );
require_once ABSPATH . 'wp-admin/includes/admin.php';
// The menu is made in the global scope.
require ABSPATH . 'wp-admin/menu.php';
WPCodebox\Guest\Command\finish(
	static fn (): array => array( 'schema' => 'wp-codebox/wordpress-admin-page-inventory/v1' )
		+ WPCodebox\Guest\Command\listing( WPCodebox\Guest\Command\admin_pages(), array( 'path', 'title' ), 500 )
);
