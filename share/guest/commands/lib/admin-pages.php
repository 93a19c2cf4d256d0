<?php
/**
 * Lists the pages of the admin area.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/listing.php';

/**
 * Returns the pages of the admin menu that WordPress has loaded: {path, title, capability, parent, hook?,
 * callbacks?}.
 *
 * @return list<array<string,mixed>>
 */
function admin_pages(): array {
	global $menu, $submenu;
	$rows = array();
	$add  = static function ( array $entry, string $parent ) use ( &$rows ): void {
		$slug = html_entity_decode( (string) ( $entry[2] ?? '' ) );
		if ( '' === $slug || str_starts_with( $slug, 'separator' ) || 1 === preg_match( '~^[a-z]+://~i', $slug ) ) {
			return;
		}
		$hook = get_plugin_page_hookname( $slug, $parent );
		$own  = has_action( $hook );
		$base = str_contains( $parent, '.php' ) && is_file( ABSPATH . 'wp-admin/' . strtok( $parent, '?' ) ) ? $parent : 'admin.php';
		$path = '/wp-admin/' . ( $own ? $base . ( str_contains( $base, '?' ) ? '&' : '?' ) . 'page=' . rawurlencode( $slug ) : $slug );
		// The title may contain markup with the number of updates.
		$title         = trim( wp_strip_all_tags( (string) preg_replace( '~<span.*$~s', '', (string) ( $entry[0] ?? '' ) ) ) );
		$rows[ $path ] = $rows[ $path ] ?? array(
			'path'       => $path,
			'title'      => cut( html_entity_decode( $title ), 200 ),
			'capability' => (string) ( $entry[1] ?? '' ),
			'parent'     => '' === $parent ? null : $parent,
			'source'     => $own ? 'plugin' : 'core',
		) + ( $own ? array(
			'hook'      => $hook,
			'callbacks' => array_column( hook_callbacks( $hook ), 'callback' ),
		) : array() );
	};
	foreach ( (array) $submenu as $parent => $entries ) {
		foreach ( (array) $entries as $entry ) {
			$add( (array) $entry, (string) $parent );
		}
	}
	foreach ( (array) $menu as $entry ) {
		$add( (array) $entry, '' );
	}
	return array_values( $rows );
}

/**
 * Returns the pages of the admin menu with those of plugins first, because they are usually the interesting ones.
 *
 * @return list<array<string,mixed>>
 */
function plugin_pages_first(): array {
	$pages = listing( admin_pages(), array( 'path' ), 500 )['items'];
	usort( $pages, static fn ( array $a, array $b ): int => array( 'core' === $a['source'], $a['path'] ) <=> array( 'core' === $b['source'], $b['path'] ) );
	return $pages;
}
