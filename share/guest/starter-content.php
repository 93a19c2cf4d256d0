<?php
/**
 * Imports the starter content of the active theme, as the customizer does on a fresh site. Prints {}.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;
require_once ABSPATH . 'wp-includes/class-wp-customize-manager.php';

update_option( 'fresh_site', 1 );
wp_set_current_user( 1 );
$GLOBALS['wp_customize'] = new \WP_Customize_Manager( array( 'settings_previewed' => false ) );
do_action( 'customize_register', $GLOBALS['wp_customize'] );
$GLOBALS['wp_customize']->import_theme_starter_content();
if ( $GLOBALS['wp_customize']->changeset_post_id() ) {
	wp_publish_post( $GLOBALS['wp_customize']->changeset_post_id() );
}
update_option( 'fresh_site', 0 );
echo "{}\n";
