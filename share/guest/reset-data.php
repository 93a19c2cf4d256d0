<?php
/**
 * Removes all posts and comments, their meta data and their terms. Prints {}.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

foreach ( array( 'posts', 'postmeta', 'comments', 'commentmeta', 'term_relationships' ) as $codebox_table ) {
	$GLOBALS['wpdb']->query( $GLOBALS['wpdb']->prepare( 'DELETE FROM %i', $GLOBALS['wpdb']->$codebox_table ) );
}
wp_cache_flush();
echo "{}\n";
