<?php
/**
 * Normalizes the input of a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Run\TaskTexts;
use WPCodebox\TaskInput\RefusedFields;
use WPCodebox\TaskInput\RuntimeProfiles;

defined( 'ABSPATH' ) || exit;

/**
 * Replaces envelopes and runtime profile of the input by the fields that they contain, trims texts, and refuses each field that
 * can have no effect in a browser; the error names the field.
 */
final class SessionInput {

	/** Fields of the task that the runner reads. */
	public const TASK = [ ...TaskTexts::NAMES, 'target', 'allowed_tools', 'expected_artifacts', 'structured_artifacts', 'tool_bridge', 'sandbox_tool_policy', 'policy', 'context', 'agent', 'provider', 'model', 'mode' ];

	private const TEXTS = [ 'goal', 'agent', 'provider', 'model', 'mode', 'sandbox_session_id', 'landing_page' ];

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param SchemaStore     $schemas   Loader of the JSON schemas.
	 * @param TaskEnvelopes   $envelopes Reads the envelopes of a task.
	 * @param RuntimeProfiles $profiles  Applies runtime profiles.
	 */
	public function __construct(
		private readonly SchemaStore $schemas,
		private readonly TaskEnvelopes $envelopes = new TaskEnvelopes(),
		private readonly RuntimeProfiles $profiles = new RuntimeProfiles()
	) {}

	/**
	 * Returns the normalized input.
	 *
	 * @param array<string, mixed> $input  Ability input.
	 * @param string               $schema Name of its schema.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_task_missing`, `wp_codebox_input_invalid`, `wp_codebox_runtime_profile_unresolved`.
	 */
	public function opened( array $input, string $schema ): array {
		$opened = $this->profiles->applied( $this->envelopes->opened( $input ) );
		$opened = $this->components( $opened );
		if ( $opened !== $input ) {
			// What an envelope, a profile or a filter added was not part of the input that WordPress validated.
			$opened = $this->schemas->valid( $schema, $opened );
		}
		foreach ( self::TEXTS as $field ) {
			if ( is_string( $opened[ $field ] ?? null ) ) {
				$opened[ $field ] = trim( $opened[ $field ] );
			}
		}
		if ( '' === ( $opened['goal'] ?? '' ) ) {
			throw Failure::because( ErrorCode::TaskMissing, __( 'The session has no goal; say in "goal" what it is for.', 'codebox' ), [], [ 'field' => 'goal' ] );
		}
		$this->refuse( $opened );
		return $opened;
	}

	/**
	 * Moves the components that a profile gives to `runtime`.
	 *
	 * @param array<string, mixed> $input Input with an applied profile.
	 * @return array<string, mixed>
	 */
	private function components( array $input ): array {
		foreach ( (array) ( $input['component_contracts'] ?? [] ) as $row ) {
			$row  = is_array( $row ) ? $row : [ 'slug' => $row ];
			$load = $row['loadAs'] ?? $row['load_as'] ?? 'plugin';
			$slug = (string) ( $row['slug'] ?? basename( (string) ( $row['path'] ?? '' ) ) );

			$input['runtime'][ 'mu-plugin' === $load ? 'mu_plugins' : 'plugins' ][] = [ 'slug' => $slug ] + ( isset( $row['activate'] ) ? [ 'activate' => (bool) $row['activate'] ] : [] );
		}
		unset( $input['component_contracts'] );
		foreach ( [ 'runtime_overlays', 'runtime_stack_mounts', 'runtime_state_mounts', 'runtime_config_mounts' ] as $field ) {
			if ( ! empty( $input[ $field ] ) ) {
				throw RefusedFields::refusal( 'runtime_profile.' . $field, __( 'a sandbox in a browser has no directories of this host', 'codebox' ), __( 'Use "plugins", "mu_plugins" or "components" in the profile, or "runtime.filesystem_overlays".', 'codebox' ) );
			}
			unset( $input[ $field ] );
		}
		return $input;
	}

	/**
	 * Fails when the input has a field that can have no effect in a browser. Empty values are accepted.
	 *
	 * @param array<string, mixed> $input Input.
	 */
	private function refuse( array $input ): void {
		if ( ! empty( $input['parent_tool_bridge'] ) ) {
			throw RefusedFields::refusal( 'parent_tool_bridge', __( 'a sandbox in a browser calls no ability of this site', 'codebox' ), __( 'Let the page that shows the sandbox call browser-connector-request; this runs with the rights of the user of the page.', 'codebox' ) );
		}
		if ( ! empty( $input['staged_files'] ) ) {
			throw RefusedFields::refusal( 'staged_files', __( 'files of this host are not sent to a browser', 'codebox' ), __( 'Give the contents in "artifact_files" or "runtime.filesystem_overlays".', 'codebox' ) );
		}
		if ( ! empty( $input['secret_env'] ) ) {
			throw RefusedFields::refusal( 'secret_env', __( 'no secret goes to a browser', 'codebox' ), __( 'Name connectors in "inherit.connectors"; the page that shows the sandbox calls browser-connector-request, which uses their credentials on this site.', 'codebox' ) );
		}
		foreach ( [ 'settings', 'credentials' ] as $field ) {
			if ( ! empty( $input['inherit'][ $field ] ) ) {
				throw RefusedFields::refusal( 'inherit.' . $field, __( 'neither settings nor credentials of this site go to a browser', 'codebox' ), __( 'Name connectors in "inherit.connectors".', 'codebox' ) );
			}
		}
		foreach ( (array) ( $input['agent_bundles'] ?? [] ) as $number => $bundle ) {
			foreach ( [ 'source', 'token_env' ] as $field ) {
				if ( ! empty( $bundle[ $field ] ) ) {
					throw RefusedFields::refusal( "agent_bundles[$number].$field", __( 'a sandbox in a browser loads no bundle from a host and gets no secret', 'codebox' ), __( 'Put the content of the bundle into "bundle".', 'codebox' ) );
				}
			}
		}
	}

	/**
	 * Returns the task that the runner in the sandbox reads.
	 *
	 * @param array<string, mixed> $input Result of `opened()`.
	 * @return array<string, mixed> `wp-codebox/task-input/v1`.
	 */
	public static function task( array $input ): array {
		$defaults = [
			'target'               => new \stdClass(),
			'allowed_tools'        => [],
			'expected_artifacts'   => [],
			'structured_artifacts' => [],
			'tool_bridge'          => new \stdClass(),
			'parent_tool_bridge'   => new \stdClass(),
			'sandbox_tool_policy'  => new \stdClass(),
			'policy'               => new \stdClass(),
			'context'              => new \stdClass(),
		];
		$given    = array_filter( array_intersect_key( $input, array_flip( self::TASK ) ), static fn( mixed $value ): bool => [] !== $value && '' !== $value );
		return [
			'schema'  => 'wp-codebox/task-input/v1',
			'version' => 1,
		] + $given + $defaults;
	}

	/**
	 * Returns a list of the input without empty texts and repetitions, from several places.
	 *
	 * @param mixed ...$lists Lists.
	 * @return list<string>
	 */
	public static function texts( mixed ...$lists ): array {
		$texts = [];
		foreach ( $lists as $list ) {
			foreach ( (array) $list as $text ) {
				if ( is_string( $text ) && '' !== trim( $text ) ) {
					$texts[] = trim( $text );
				}
			}
		}
		return array_values( array_unique( $texts ) );
	}
}
