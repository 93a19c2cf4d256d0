<?php
/**
 * Plugins, themes and bundles that a browser session starts with.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SingleFilePlugins;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Finds the code that the input names among the installed plugins and themes. Paths of the host are never taken. */
final class CodeSources {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param InstalledCode $code Finds the directories of installed plugins and themes.
	 */
	public function __construct( private readonly InstalledCode $code ) {}

	/**
	 * Returns the roots of a session and the steps that activate them.
	 *
	 * @param array<string, mixed> $input Result of `SessionInput::opened()`.
	 * @return array{roots: list<array{kind: string, slug: string}>, steps: list<array<string, mixed>>}
	 * @throws Failure `wp_codebox_browser_runtime_component_unresolved`, `wp_codebox_browser_plugin_host_not_allowed`, `wp_codebox_input_invalid`.
	 */
	public function of( array $input ): array {
		$rows    = [];
		$runtime = (array) ( $input['runtime'] ?? [] );
		foreach ( (array) ( $input['roots'] ?? [] ) as $number => $root ) {
			if ( '' === ( $root['slug'] ?? '' ) || '' === ( $root['kind'] ?? '' ) ) {
				throw Failure::invalid_input( __( 'Each entry of "roots" needs "kind" and "slug".', 'codebox' ), [], [ 'field' => "roots[$number]" ] );
			}
			$rows[] = [ $root['kind'], $root['slug'], $root['activate'] ?? true, "roots[$number]" ];
		}
		/**
		 * Filters the plugins that every sandbox in a browser has.
		 *
		 * @param list<string> $slugs Slugs of installed plugins.
		 */
		$required = apply_filters( 'wp_codebox_browser_runtime_required_components', [] );
		foreach ( [
			'plugin' => [
				'runtime_required_components' => is_array( $required ) ? $required : [],
				'provider_plugin_paths'       => $input['provider_plugin_paths'] ?? [],
				'runtime_packages'            => $input['runtime_packages'] ?? [],
				'runtime_recipe.packages'     => $input['runtime_recipe']['packages'] ?? [],
				'runtime.packages'            => $runtime['packages'] ?? [],
				'runtime.recipe.packages'     => $runtime['recipe']['packages'] ?? [],
				'runtime.components'          => $runtime['components'] ?? [],
				'runtime.plugins'             => $runtime['plugins'] ?? [],
			],
			'mu'     => [ 'runtime.mu_plugins' => $runtime['mu_plugins'] ?? [] ],
			'theme'  => [ 'runtime.themes' => $runtime['themes'] ?? [] ],
		] as $kind => $fields ) {
			foreach ( $fields as $field => $list ) {
				foreach ( array_values( (array) $list ) as $number => $row ) {
					$rows[] = $this->row( $kind, $row, "{$field}[$number]" );
				}
			}
		}
		$plugins = array_map( static fn( mixed $plugin ): array => is_array( $plugin ) ? $plugin : [ 'slug' => $plugin ], array_values( (array) ( $input['browser_plugins'] ?? [] ) ) );
		foreach ( $plugins as $number => $plugin ) {
			if ( '' === (string) ( $plugin['url'] ?? '' ) ) {
				$rows[] = $this->row( 'plugin', $plugin, "browser_plugins[$number]" );
			}
		}
		return $this->planned( array_filter( $rows ), $plugins );
	}

	/**
	 * Reads one entry of a list.
	 *
	 * @param string $kind  `plugin`, `mu` or `theme`.
	 * @param mixed  $given Slug, or object with slug and activate.
	 * @param string $field Path of the entry.
	 * @return array{string, string, bool, string}|null Null for a must-use plugin that comes with its content.
	 */
	private function row( string $kind, mixed $given, string $field ): ?array {
		$given = is_array( $given ) ? $given : [ 'slug' => $given ];
		if ( 'mu' === $kind && isset( $given['content'] ) ) {
			return null;
		}
		$slug = (string) ( $given['slug'] ?? $given['id'] ?? $given['name'] ?? $given['path'] ?? '' );
		if ( str_contains( $slug, '/' ) ) {
			// A directory of an installed plugin means that plugin.
			$mount = $this->code->mount_of( $slug );
			$slug  = null === $mount ? $slug : basename( $mount['target'] );
		}
		return [ $kind, $slug, (bool) ( $given['activate'] ?? true ), $field ];
	}

	/**
	 * Returns the steps that activate the plugins and the theme of bundles, which are known only after packing.
	 *
	 * @param list<array<string, mixed>> $packed Directories with their archives.
	 * @return list<array<string, mixed>>
	 */
	public static function activation( array $packed ): array {
		$steps = [];
		foreach ( $packed as $row ) {
			$slug = basename( $row['target'] );
			if ( isset( $row['overlay'] ) ) {
				$steps[] = str_starts_with( $row['target'], 'themes/' )
					? [ 'step' => 'activateTheme', 'themeFolderName' => $slug ]
					: [ 'step' => 'activatePlugin', 'pluginPath' => $slug ];
			}
		}
		return $steps;
	}

	/**
	 * Resolves the rows.
	 *
	 * @param array<array{string, string, bool, string}> $rows    Kind, slug, activation and field of each.
	 * @param list<array<string, mixed>>                 $plugins `browser_plugins` of the input.
	 * @return array{roots: list<array{kind: string, slug: string}>, steps: list<array<string, mixed>>}
	 */
	private function planned( array $rows, array $plugins ): array {
		[ $roots, $steps, $themed ] = [ [], [], false ];
		foreach ( $rows as [ $kind, $slug, $activate, $field ] ) {
			if ( 'bundle' === $kind ) {
				if ( ! $activate ) {
					throw Failure::invalid_input( __( 'The plugins and the theme of a bundle are always activated; leave "activate" out.', 'codebox' ), [], [ 'field' => $field . '.activate' ] );
				}
				$roots[ "bundle:$slug" ] = [ 'kind' => 'bundle', 'slug' => $slug ];
				continue;
			}
			$slug = $this->resolved( 'theme' === $kind ? 'theme' : 'plugin', $slug, $field );

			$roots[ ( 'theme' === $kind ? 'theme:' : 'plugin:' ) . $slug ] = [ 'kind' => 'theme' === $kind ? 'theme' : 'plugin', 'slug' => $slug ];
			if ( 'mu' === $kind ) {
				$main    = $this->main_file( $slug );
				$steps[] = [
					'step' => 'writeFile',
					'path' => '/wordpress/wp-content/mu-plugins/codebox-' . sanitize_file_name( str_replace( '/', '-', $slug ) ) . '.php',
					'data' => "<?php\nrequire_once WP_PLUGIN_DIR . " . var_export( '/' . $main, true ) . ";\n", // phpcs:ignore WordPress.PHP.DevelopmentFunctions -- writes PHP source.
				];
			} elseif ( 'theme' === $kind && $activate && ! $themed ) {
				$themed  = true;
				$steps[] = [ 'step' => 'activateTheme', 'themeFolderName' => $slug ];
			} elseif ( 'plugin' === $kind && $activate ) {
				$steps[] = [ 'step' => 'activatePlugin', 'pluginPath' => $this->main_file( $slug ) ];
			}
		}
		foreach ( $plugins as $number => $plugin ) {
			if ( '' !== (string) ( $plugin['url'] ?? '' ) ) {
				$steps[] = PluginUrls::step( $plugin, $number );
			}
		}
		return [
			'roots' => array_values( $roots ),
			'steps' => array_values( array_unique( $steps, SORT_REGULAR ) ),
		];
	}

	/**
	 * Returns the slug of installed code.
	 *
	 * @param string $kind  `plugin` or `theme`.
	 * @param string $slug  Slug as given.
	 * @param string $field Path of the field.
	 */
	private function resolved( string $kind, string $slug, string $field ): string {
		if ( 'plugin' === $kind ) {
			/**
			 * Filters names of components of sandboxes in a browser.
			 *
			 * @param array<string, string|array{slug: string}> $registry Slug of an installed plugin by name of a component.
			 */
			$registry = apply_filters( 'wp_codebox_browser_runtime_component_registry', [] );
			$entry    = is_array( $registry ) ? $registry[ $slug ] ?? null : null;
			$slug     = is_array( $entry ) ? (string) ( $entry['slug'] ?? $slug ) : ( is_string( $entry ) ? $entry : $slug );
		}
		/**
		 * Filters the directories in which a component may be; a callback can only take the plugin directory away.
		 *
		 * @param list<string> $roots Directories: the plugin directory of this site.
		 * @param string       $slug  Slug of the component.
		 */
		$allowed = apply_filters( 'wp_codebox_browser_runtime_host_plugin_roots', [ WP_PLUGIN_DIR ], $slug );
		$found   = null !== $this->code->directory( $kind, $slug ) || ( 'plugin' === $kind && null !== SingleFilePlugins::path( $slug ) );
		if ( $found && ( 'theme' === $kind || in_array( WP_PLUGIN_DIR, (array) $allowed, true ) ) ) {
			return $slug;
		}
		/**
		 * Fires when a session names code that is not installed.
		 *
		 * @param string $slug Slug.
		 */
		do_action( 'wp_codebox_browser_runtime_component_unresolved', $slug );
		throw Failure::because(
			ErrorCode::BrowserRuntimeComponentUnresolved,
			/* translators: %s: slug. */
			Sentence::of( __( '"%s" is not installed on this site, so it cannot be in the sandbox.', 'codebox' ), sanitize_text_field( $slug ) ),
			[ __( 'Install it, or map this name to the slug of an installed plugin with the filter wp_codebox_browser_runtime_component_registry.', 'codebox' ) ],
			[ 'field' => $field ]
		);
	}

	/**
	 * Returns the main file of a plugin, relative to the plugin directory.
	 *
	 * @param string $slug Slug.
	 */
	private function main_file( string $slug ): string {
		foreach ( array_keys( self::plugins() ) as $file ) {
			if ( str_starts_with( $file, $slug . '/' ) || $file === $slug || $file === $slug . '.php' ) {
				return $file;
			}
		}
		return $slug . '/' . $slug . '.php';
	}

	/**
	 * Returns the installed plugins by main file.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private static function plugins(): array {
		if ( ! function_exists( 'get_plugins' ) ) {
			require_once ABSPATH . 'wp-admin/includes/plugin.php';
		}
		return get_plugins();
	}
}
