<?php
/**
 * Command `wordpress.admin-action-inventory`: what requests to the admin area can set off: actions
 * of admin-ajax.php and admin-post.php with their callbacks, and the forms and links of pages.
 *
 * Pages are loaded one by one in processes of their own, `max-pages` of them (10 unless said
 * otherwise, 0 for none); a page that fails is named.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/surfaces.php';
require __DIR__ . '/lib/admin-pages.php';
require __DIR__ . '/lib/admin-actions.php';

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
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\admin_actions( $arguments ) );
