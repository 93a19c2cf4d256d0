<?php
/**
 * Plugins and theme of a site seed.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Activates the plugins and theme that were active in the fixture, if the guest has them.
 *
 * @param array<string, mixed> $fixture Fixture.
 * @param array<string, mixed> $scopes  Scopes by kind.
 * @param string               $absent  What to do with plugins and themes that the guest lacks: `skip` or `fail`.
 * @return array<string, array{created: int, skipped: int, problems: list<string>}> Outcome of each selected kind.
 */
function seed_switches( array $fixture, array $scopes, string $absent ): array {
	require_once ABSPATH . 'wp-admin/includes/plugin.php';
	$outcomes = array();
	$nothing  = array(
		'created'  => 0,
		'skipped'  => 0,
		'problems' => array(),
	);
	$plugins = $fixture['activePlugins'] ?? null;
	if ( ! empty( $scopes['activePlugins'] ) && is_array( $plugins ) ) {
		$outcomes['activePlugins'] = $nothing;
		foreach ( $plugins as $file ) {
			// A guest has only the plugins that its recipe adds, not all of the parent site.
			if ( 'skip' === $absent && is_string( $file ) && 0 === validate_file( $file ) && ! is_file( WP_PLUGIN_DIR . '/' . $file ) ) {
				++$outcomes['activePlugins']['skipped'];
				continue;
			}
			$done = is_string( $file ) ? activate_plugin( $file ) : new \WP_Error( 'name', 'the name is not a string' );
			if ( is_wp_error( $done ) ) {
				$outcomes['activePlugins']['problems'][] = 'activePlugins: ' . wp_strip_all_tags( $done->get_error_message() );
				continue;
			}
			++$outcomes['activePlugins']['created'];
		}
	}
	$theme = $fixture['activeTheme'] ?? null;
	if ( ! empty( $scopes['activeTheme'] ) && is_string( $theme ) ) {
		$outcomes['activeTheme'] = $nothing;
		if ( wp_get_theme( $theme )->exists() ) {
			switch_theme( $theme );
			$outcomes['activeTheme']['created'] = 1;
		} elseif ( 'skip' === $absent ) {
			$outcomes['activeTheme']['skipped'] = 1;
		} else {
			$outcomes['activeTheme']['problems'][] = 'activeTheme: there is no theme of this name in the guest';
		}
	}
	return $outcomes;
}
