<?php
/**
 * Runtime profiles: named sets of components and defaults.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\TaskInput;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Adds to a task what its `runtime_profile` describes: `components`, `plugins` and `mu_plugins` become components,
 * the mounts of the profile become mounts, and `agent`, `provider`, `model`, `mode` and `placement` are defaults. The
 * profile is written into the task, or is the id of a profile of this site.
 */
final class RuntimeProfiles {

	/** Profiles that exist on every site. The empty ones describe what every sandbox of this plugin is, so they add nothing. */
	private const BUILT_IN = [
		'wordpress-playground'    => [],
		'codebox-agent-runtime'   => [],
		'agent-runtime'           => [],
		'wordpress-agent-runtime' => [],
		'provider-openai'         => [ 'provider' => 'openai' ],
	];

	/** Members that describe the profile and have no effect on a task. */
	private const NOTES = [ 'schema', 'version', 'id', 'name', 'label', 'description', 'capabilities', 'readiness', 'diagnostics', 'provenance', 'metadata', 'aliases' ];

	/** Members that are fields of a task with the same meaning; lists are joined. */
	private const SAME = [ 'component_contracts', 'provider_plugin_paths', 'agent_bundles', 'runtime_overlays', 'runtime_stack_mounts', 'runtime_state_mounts', 'runtime_config_mounts', 'secret_env' ];

	private const DEFAULTS = [ 'agent', 'provider', 'model', 'mode', 'placement' ];

	/**
	 * Returns the task without `runtime_profile`, with what the profile adds.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_runtime_profile_unresolved`, `wp_codebox_input_invalid`.
	 */
	public function applied( array $input ): array {
		$raw = $input['runtime_profile'] ?? [];
		unset( $input['runtime_profile'] );
		if ( [] === $raw || '' === $raw || null === $raw ) {
			return $input;
		}
		/**
		 * Filters a runtime profile before it is applied to a task.
		 *
		 * @param array<string, mixed> $profile Profile, with what its entry in the registry gives.
		 * @param mixed                $raw     Profile as the task gives it.
		 */
		$profile = apply_filters( 'wp_codebox_runtime_profile', $this->resolved( $raw, $input ), $raw );
		$profile = is_array( $profile ) ? $profile : [];
		/**
		 * Filters a task after its runtime profile was applied. The result is checked like every task.
		 *
		 * @param array<string, mixed> $input   Task input.
		 * @param array<string, mixed> $profile Profile.
		 */
		$applied = apply_filters( 'wp_codebox_apply_runtime_profile', $this->with( $input, $profile ), $profile );
		return is_array( $applied ) ? $applied : $this->with( $input, $profile );
	}

	/**
	 * Returns the profile that a task gives, with the members of the registry entry that it names.
	 *
	 * @param mixed                $raw   Profile as the task gives it.
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function resolved( mixed $raw, array $input ): array {
		$profile = is_array( $raw ) ? $raw : [ 'id' => $raw ];
		$id      = $profile['id'] ?? $profile['name'] ?? null;
		/**
		 * Filters the runtime profiles that a task may name.
		 *
		 * @param array<string, array<string, mixed>> $registry    Profiles by id.
		 * @param array<string, mixed>                $input       Task input.
		 * @param array<string, mixed>                $inheritance Field `inherit` of the task.
		 */
		$registry = apply_filters( 'wp_codebox_runtime_profile_registry', self::BUILT_IN, $input, (array) ( $input['inherit'] ?? [] ) );
		$registry = is_array( $registry ) ? $registry : self::BUILT_IN;
		if ( is_string( $id ) && isset( $registry[ $id ] ) ) {
			return $profile + (array) $registry[ $id ];
		}
		if ( [] === array_diff_key( $profile, array_flip( self::NOTES ) ) ) {
			throw Failure::because(
				ErrorCode::RuntimeProfileUnresolved,
				/* translators: %s: name of a runtime profile. */
				Sentence::of( __( 'There is no runtime profile "%s".', 'codebox' ), is_scalar( $id ) ? (string) $id : '' ),
				[
					/* translators: %s: list of names. */
					Sentence::of( __( 'Known profiles: %s. The filter wp_codebox_runtime_profile_registry adds others.', 'codebox' ), implode( ', ', array_keys( $registry ) ) ),
				],
				[ 'field' => 'runtime_profile' ]
			);
		}
		return $profile;
	}

	/**
	 * Adds the members of a profile to a task. The task's own components come last, so they replace those of the profile.
	 *
	 * @param array<string, mixed> $input   Task input.
	 * @param array<string, mixed> $profile Profile.
	 * @return array<string, mixed>
	 */
	private function with( array $input, array $profile ): array {
		$components = [
			...$this->components( $profile['components'] ?? [], 'mu-plugin' ),
			...$this->components( $profile['mu_plugins'] ?? [], 'mu-plugin' ),
			...$this->components( $profile['plugins'] ?? [], 'plugin' ),
		];
		foreach ( array_filter( [ 'component_contracts' => $components ] ) + array_filter( array_intersect_key( $profile, array_flip( self::SAME ) ) ) as $field => $rows ) {
			$input[ $field ] = [ ...array_values( (array) $rows ), ...array_values( (array) ( $input[ $field ] ?? [] ) ) ];
		}
		foreach ( self::DEFAULTS as $field ) {
			if ( ! empty( $profile[ $field ] ) && empty( $input[ $field ] ) ) {
				$input[ $field ] = $profile[ $field ];
			}
		}
		$known = [ ...self::NOTES, ...self::SAME, ...self::DEFAULTS, 'components', 'mu_plugins', 'plugins' ];
		foreach ( array_keys( array_filter( array_diff_key( $profile, array_flip( $known ) ) ) ) as $member ) {
			throw RefusedFields::refusal( 'runtime_profile.' . $member, __( 'this version of Codebox has no such field in a runtime profile', 'codebox' ), __( 'Use "plugins", "mu_plugins" or "components" in the profile, or "mounts" in the task.', 'codebox' ) );
		}
		return $input;
	}

	/**
	 * Converts plugins of a profile to component contracts.
	 *
	 * @param mixed  $rows Slugs, paths or contracts.
	 * @param string $load How WordPress loads them.
	 * @return list<array<string, mixed>>
	 */
	private function components( mixed $rows, string $load ): array {
		$contracts = [];
		foreach ( is_array( $rows ) ? $rows : [] as $row ) {
			if ( is_string( $row ) ) {
				$row = str_contains( $row, '/' ) ? [ 'path' => $row ] : [ 'slug' => $row ];
			}
			$contracts[] = (array) $row + [ 'loadAs' => $load ] + ( 'plugin' === $load ? [ 'activate' => true ] : [] );
		}
		return $contracts;
	}
}
