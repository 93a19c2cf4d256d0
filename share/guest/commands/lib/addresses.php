<?php
/**
 * URLs of the site's front end.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Maximum number of URLs for each post type and for each taxonomy. */
const ADDRESSES_OF_A_KIND = 200;

/**
 * Returns URLs: {kind, url, type?, id?}; URLs with an id come from the database.
 *
 * @return list<array<string,mixed>>
 */
function addresses(): array {
	$rows = array();
	$add  = static function ( string $kind, mixed $url, array $more = array() ) use ( &$rows ): void {
		if ( is_string( $url ) && '' !== $url ) {
			$rows[ $url ] = $rows[ $url ] ?? array(
				'kind' => $kind,
				'url'  => $url,
				'path' => (string) substr( $url, strlen( untrailingslashit( home_url() ) ) ) ?: '/',
			) + $more;
		}
	};
	$add( 'home', home_url( '/' ) );
	$posts_page = (int) get_option( 'page_for_posts' );
	if ( $posts_page > 0 ) {
		$add( 'posts-page', get_permalink( $posts_page ), array( 'id' => $posts_page ) );
	}
	foreach ( array_filter( get_post_types( array(), 'objects' ), 'is_post_type_viewable' ) as $type ) {
		$query = array(
			'post_type'      => $type->name,
			'post_status'    => 'attachment' === $type->name ? 'inherit' : 'publish',
			'posts_per_page' => ADDRESSES_OF_A_KIND,
			'orderby'        => 'ID',
			'order'          => 'ASC',
			'fields'         => 'ids',
			'no_found_rows'  => true,
		);
		foreach ( ( new \WP_Query() )->query( $query ) as $id ) {
			$add( 'singular', get_permalink( $id ), array( 'type' => $type->name, 'id' => (int) $id ) );
		}
		if ( $type->has_archive ) {
			$add( 'post-type-archive', get_post_type_archive_link( $type->name ), array( 'type' => $type->name ) );
		}
	}
	foreach ( array_filter( get_taxonomies( array(), 'objects' ), 'is_taxonomy_viewable' ) as $taxonomy ) {
		foreach ( (array) get_terms( array( 'taxonomy' => $taxonomy->name, 'hide_empty' => true, 'number' => ADDRESSES_OF_A_KIND, 'orderby' => 'term_id' ) ) as $term ) {
			if ( $term instanceof \WP_Term ) {
				$add( 'term', get_term_link( $term ), array( 'type' => $taxonomy->name, 'id' => $term->term_id ) );
			}
		}
	}
	foreach ( get_users( array( 'has_published_posts' => true, 'number' => ADDRESSES_OF_A_KIND, 'orderby' => 'ID', 'fields' => 'ID' ) ) as $id ) {
		$add( 'author', get_author_posts_url( (int) $id ), array( 'id' => (int) $id ) );
	}
	$add( 'feed', get_feed_link() );
	$add( 'feed', get_feed_link( 'comments_rss2' ) );
	$add( 'search', get_search_link( 'a' ) );
	$sitemap = wp_sitemaps_get_server();
	if ( $sitemap->sitemaps_enabled() ) {
		$add( 'sitemap', get_sitemap_url( 'index' ) );
	}
	$add( 'rest', rest_url() );
	return array_values( $rows );
}
