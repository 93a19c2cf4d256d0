<?php
/**
 * Links that open code in a browser sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Adds "Open in browser sandbox" to the rows of plugins and, on a network, of themes, and to the details of a theme. WordPress's grid of
 * themes has no filter for further buttons.
 */
final class SandboxLinks {

	/**
	 * Creates the links with their dependencies.
	 *
	 * @param Capabilities $capabilities Permission checks of the user.
	 */
	public function __construct( private readonly Capabilities $capabilities ) {}

	/** Registers the hooks. */
	public function register(): void {
		add_filter( 'plugin_action_links', [ $this, 'plugin' ], 10, 2 );
		add_filter( 'theme_action_links', [ $this, 'theme_row' ], 10, 2 );
		add_filter( 'wp_prepare_themes_for_js', [ $this, 'theme_details' ] );
	}

	/**
	 * Returns the address that opens a plugin, theme or bundle.
	 *
	 * @param string $kind `plugin`, `theme` or `bundle`.
	 * @param string $slug Directory name, file of a plugin without directory, or artifact id.
	 */
	public static function address( string $kind, string $slug ): string {
		return add_query_arg(
			[
				'page'     => BrowserPage::SLUG,
				'kind'     => $kind,
				'slug'     => rawurlencode( $slug ),
				'_wpnonce' => wp_create_nonce( BrowserPage::NONCE ),
			],
			admin_url( 'admin.php' )
		);
	}

	/**
	 * Adds the link to the row of a plugin.
	 *
	 * @param mixed $links Links so far.
	 * @param mixed $file  Plugin file relative to the plugin directory.
	 */
	public function plugin( mixed $links, mixed $file = '' ): mixed {
		return is_array( $links ) && is_string( $file ) && '' !== $file ? $this->added( $links, 'plugin', explode( '/', $file )[0] ) : $links;
	}

	/**
	 * Adds the link to the row of a theme on a network.
	 *
	 * @param mixed $links Links so far.
	 * @param mixed $theme Theme.
	 */
	public function theme_row( mixed $links, mixed $theme = null ): mixed {
		return is_array( $links ) && $theme instanceof \WP_Theme ? $this->added( $links, 'theme', $theme->get_stylesheet() ) : $links;
	}

	/**
	 * Adds the link to the description in the details of each theme.
	 *
	 * @param mixed $themes Themes by stylesheet, as WordPress prints them for its script.
	 */
	public function theme_details( mixed $themes ): mixed {
		foreach ( is_array( $themes ) && $this->capabilities->allows( Capabilities::RUN ) ? $themes : [] as $slug => $theme ) {
			if ( is_array( $theme ) && is_string( $theme['description'] ?? null ) ) {
				$themes[ $slug ]['description'] .= ' ' . self::link( 'theme', (string) ( $theme['id'] ?? $slug ) );
			}
		}
		return $themes;
	}

	/**
	 * Adds a link for users who may open a sandbox.
	 *
	 * @param array<array-key, mixed> $links Links so far.
	 * @param string                  $kind  `plugin` or `theme`.
	 * @param string                  $slug  Slug.
	 * @return array<array-key, mixed>
	 */
	private function added( array $links, string $kind, string $slug ): array {
		return $this->capabilities->allows( Capabilities::RUN ) ? $links + [ BrowserPage::SLUG => self::link( $kind, $slug ) ] : $links;
	}

	/**
	 * Builds a link.
	 *
	 * @param string $kind `plugin` or `theme`.
	 * @param string $slug Slug.
	 */
	private static function link( string $kind, string $slug ): string {
		return sprintf( '<a href="%s">%s</a>', esc_url( self::address( $kind, $slug ) ), esc_html__( 'Open in browser sandbox', 'codebox' ) );
	}
}
