<?php
/**
 * Components of a task: plugins of this host that the sandbox's WordPress loads besides the code under change.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Converts the site's component contracts and the task's `component_contracts` and `provider_plugin_paths` to components. A
 * component contract describes one plugin and how to load it. A later component replaces an earlier one with the same slug. The
 * extension and its supervisor check names, entry files, overlaps and mount rights.
 */
final class ComponentPlan {

	private const MU_TARGET = '/wordpress/wp-content/mu-plugins/contained-runtime/';

	/**
	 * Creates the plan with its dependencies.
	 *
	 * @param Settings      $settings Settings of the host (plugin settings page and constants).
	 * @param InstalledCode $code     Lookup of installed plugins and themes.
	 * @param Site          $site     Site the plugin runs on.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly InstalledCode $code,
		private readonly Site $site
	) {}

	/**
	 * Returns the request fields `components` and `agent_bundles`.
	 *
	 * @param array<string, mixed>       $input     Task input.
	 * @param list<array<string, mixed>> $mounts    Mounts of the task.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @return array<string, list<array<string, mixed>>>
	 * @throws Failure `wp_codebox_component_path_missing`, `wp_codebox_mount_denied`, `wp_codebox_input_invalid`.
	 */
	public function fields( array $input, array $mounts, Authority $authority ): array {
		$components = $this->of_site( $mounts, $authority );
		foreach ( (array) ( $input['component_contracts'] ?? [] ) as $contract ) {
			$row                        = $this->component( (array) $contract, $authority );
			$components[ $row['slug'] ] = $row;
		}
		foreach ( (array) ( $input['provider_plugin_paths'] ?? [] ) as $path ) {
			$row                        = $this->provider( (string) $path, $authority );
			$components[ $row['slug'] ] = $row;
		}
		return [
			'components'    => array_values( $components ),
			'agent_bundles' => array_values( array_map( static fn( mixed $row ): array => array_filter( (array) $row, static fn( mixed $value ): bool => null !== $value ), (array) ( $input['agent_bundles'] ?? [] ) ) ),
		];
	}

	/**
	 * Returns where each component comes from, as its contract states, for the provenance record of the run.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, array<string, mixed>> Origins by slug.
	 */
	public function provenance( array $input ): array {
		$found = [];
		foreach ( (array) ( $input['component_contracts'] ?? [] ) as $contract ) {
			if ( is_array( $contract['provenance'] ?? null ) && [] !== $contract['provenance'] ) {
				$found[ (string) ( $contract['slug'] ?? basename( (string) ( $contract['path'] ?? $contract['source'] ?? '' ) ) ) ] = $contract['provenance'];
			}
		}
		return $found;
	}

	/**
	 * Returns the site's components without those that the task mounts itself.
	 *
	 * @param list<array<string, mixed>> $mounts    Mounts of the task.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @return array<string, array<string, mixed>> Components by slug.
	 */
	private function of_site( array $mounts, Authority $authority ): array {
		$targets    = array_map( static fn( array $mount ): string => rtrim( (string) ( $mount['target'] ?? '' ), '/' ), $mounts );
		$components = [];
		foreach ( [ ...$this->defaults(), ...$this->settings->component_contracts() ] as $contract ) {
			$row   = $this->component( $contract, $authority );
			$place = ( 'plugin' === $row['load_as'] ? InstalledCode::PLUGIN_TARGET : self::MU_TARGET ) . $row['slug'];
			// The task's own copy has precedence, because it is the code under change.
			if ( ! in_array( $place, $targets, true ) ) {
				$components[ $row['slug'] ] = $row;
			}
		}
		return $components;
	}

	/**
	 * Returns contracts for the plugins that every sandbox of this site loads by their slugs.
	 *
	 * @return list<array{slug: string}>
	 */
	private function defaults(): array {
		/**
		 * Filters the slugs of installed plugins that every sandbox loads as must-use plugins. A component
		 * contract with the same slug replaces the plugin.
		 *
		 * @param list<string> $slugs Empty: the built-in agent runs outside the sandbox and needs no plugin.
		 */
		$slugs = apply_filters( 'wp_codebox_agent_runtime_default_components', [] );
		return array_map( static fn( string $slug ): array => [ 'slug' => $slug ], array_values( array_filter( is_array( $slugs ) ? $slugs : [], 'is_string' ) ) );
	}

	/**
	 * Converts one component contract to a row of the run request.
	 *
	 * @param array<string, mixed> $contract Contract {slug, path, source, entry, activate, loadAs, required,
	 *   readiness_probe}.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	private function component( array $contract, Authority $authority ): array {
		$path = (string) ( $contract['path'] ?? $contract['source'] ?? '' );
		$slug = (string) ( $contract['slug'] ?? basename( rtrim( $path, '/' ) ) );
		$row  = [
			'slug'     => $slug,
			'source'   => $this->directory( $path, $slug, $authority ),
			'load_as'  => (string) ( $contract['loadAs'] ?? 'mu-plugin' ),
			'activate' => (bool) ( $contract['activate'] ?? false ),
			'required' => (bool) ( $contract['required'] ?? false ),
		];
		if ( isset( $contract['entry'] ) ) {
			$row['entry'] = (string) $contract['entry'];
		}
		if ( ! empty( $contract['readiness_probe'] ) ) {
			$row['readiness_probe'] = (array) $contract['readiness_probe'];
		}
		return $row;
	}

	/**
	 * Builds a component for a model provider plugin: it is activated, and the run fails without it.
	 *
	 * @param string    $path      Directory of the plugin, or the slug of an installed plugin.
	 * @param Authority $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	private function provider( string $path, Authority $authority ): array {
		$slug = basename( rtrim( $path, '/' ) );
		return [
			'slug'     => $slug,
			'source'   => $this->directory( str_contains( $path, '/' ) ? $path : '', $slug, $authority ),
			'load_as'  => 'plugin',
			'activate' => true,
			'required' => true,
		];
	}

	/**
	 * Returns the canonical host directory of a component, after checking that the caller may mount it.
	 *
	 * @param string    $path      Path from the contract; when empty, the installed plugin of that slug is
	 *   used.
	 * @param string    $slug      Slug of the component.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_component_path_missing`, `wp_codebox_mount_denied`.
	 */
	private function directory( string $path, string $slug, Authority $authority ): string {
		if ( '' === $path ) {
			$directory = $this->code->directory( 'plugin', $slug );
			if ( null === $directory ) {
				$plugins = $this->code->installed( 'plugin' );
				throw Failure::because(
					ErrorCode::ComponentPathMissing,
					/* translators: %s: name of a component. */
					Sentence::of( __( 'The component "%s" has no path, and no plugin of that name is installed.', 'codebox' ), $slug ),
					/* translators: %s: list of names, or "none". */
					[ Sentence::of( __( 'Installed: %s.', 'codebox' ), [] === $plugins ? __( 'none', 'codebox' ) : implode( ', ', array_keys( $plugins ) ) ) ]
				);
			}
			return $directory;
		}
		$real  = str_starts_with( $path, '/' ) ? realpath( $path ) : false;
		$roots = $this->site->allowed_roots( $authority );
		// The error must not reveal whether a path outside of the mountable directories exists.
		if ( null !== $roots && ! Site::is_within( false === $real ? $path : $real, $roots ) ) {
			/* translators: %s: name of a component. */
			throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The path of the component "%s" lies outside the installed plugins and themes and the directories of wp_codebox.mount_roots in php.ini.', 'codebox' ), $slug ) );
		}
		if ( false !== $real && $this->site->refuses( $real ) ) {
			/* translators: %s: name of a component. */
			throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The path of the component "%s" contains this site, a directory of Codebox or a system directory, or is inside one of them and is not an installed plugin or theme.', 'codebox' ), $slug ) );
		}
		if ( false === $real || ! is_dir( $real ) ) {
			/* translators: %s: name of a component. */
			throw Failure::because( ErrorCode::ComponentPathMissing, Sentence::of( __( 'The path of the component "%s" is not a directory; give the absolute path of the plugin\'s directory.', 'codebox' ), $slug ) );
		}
		return $real;
	}
}
