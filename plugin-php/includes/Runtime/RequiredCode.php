<?php
/**
 * Plugins that a task needs in its sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/** Looks up components and plugins by slug. A path counts as available: the answer must not reveal which directories exist. */
final class RequiredCode {

	/**
	 * Creates the lookup with its dependencies.
	 *
	 * @param Settings      $settings  Settings of the host (plugin settings page and constants).
	 * @param InstalledCode $installed Lookup of installed plugins and themes.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly InstalledCode $installed
	) {}

	/**
	 * Returns the components of the task and of this site.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @param MissingParts         $missing Collects what is missing.
	 * @return list<array<string, mixed>>
	 */
	public function components( array $input, MissingParts $missing ): array {
		$rows = [];
		foreach ( [ ...$this->settings->component_contracts(), ...array_values( (array) ( $input['component_contracts'] ?? [] ) ), ...array_values( (array) ( $input['components'] ?? [] ) ) ] as $given ) {
			$given = is_array( $given ) ? $given : [ 'slug' => trim( (string) $given ) ];
			$path  = (string) ( $given['path'] ?? $given['source'] ?? '' );
			$slug  = trim( (string) ( $given['slug'] ?? basename( rtrim( $path, '/' ) ) ) );
			if ( '' === $slug || str_contains( $slug, '/' ) ) {
				throw Failure::invalid_input( __( 'A component (a plugin that the sandbox loads) has no valid "slug"; give the name of its directory.', 'codebox' ), [], [ 'field' => 'components' ] );
			}
			// Any path counts as available, so that the answer does not reveal which directories of the host exist. A run
			// reports a missing one.
			$there         = '' !== $path || $this->installed( $slug );
			$rows[ $slug ] = [
				'slug'   => $slug,
				'status' => $there ? 'available' : 'missing',
			] + HostAnswer::filled( [ 'loadAs' => is_string( $given['loadAs'] ?? null ) ? $given['loadAs'] : '' ] ) + ( isset( $given['required'] ) ? [ 'required' => (bool) $given['required'] ] : [] );
			if ( ! $there ) {
				$missing->add( 'component', $slug, __( 'no plugin of this name is installed', 'codebox' ) );
			}
		}
		return array_values( $rows );
	}

	/**
	 * Returns the plugins that add the provider, and the dependencies of the task.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @param MissingParts         $missing Collects what is missing.
	 * @return list<array<string, string>>
	 */
	public function plugins( array $input, MissingParts $missing ): array {
		$rows = [];
		foreach ( [ ...(array) ( $input['provider_plugin_paths'] ?? [] ), ...(array) ( $input['dependencies'] ?? [] ) ] as $path ) {
			$slug = basename( rtrim( (string) $path, '/' ) );
			if ( '' === $slug ) {
				continue;
			}
			$there         = str_contains( (string) $path, '/' ) || $this->installed( $slug );
			$rows[ $slug ] = [
				'slug'   => $slug,
				'status' => $there ? 'available' : 'missing',
			];
			if ( ! $there ) {
				$missing->add( 'plugin', $slug, __( 'no plugin of this name is installed', 'codebox' ) );
			}
		}
		return array_values( $rows );
	}

	/**
	 * Checks whether a plugin with a directory of this name is installed and may be mounted.
	 *
	 * @param string $slug Slug.
	 */
	private function installed( string $slug ): bool {
		return isset( $this->installed->installed( 'plugin' )[ $slug ] );
	}
}
