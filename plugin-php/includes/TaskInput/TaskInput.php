<?php
/**
 * Converts the public input of a task to the fields of this plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\TaskInput;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Failure;
use WPCodebox\Native\AgentTask;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Converts public fields that the extension does not know to fields that it knows. A field that cannot have its effect
 * is refused by its name.
 *
 * The extension unpacks envelopes and trims texts (`AgentTask::input()`), again after a runtime profile or a filter added some.
 * This class removes empty values, because classes of the plugin look up names before the extension reads the task.
 */
final class TaskInput {

	/** Fields that this class converts. The extension does not know them. */
	private const CONVERTED = [ 'schema', 'version', 'mode', 'workspaces', 'runtime_stack_mounts', 'runtime_state_mounts', 'runtime_config_mounts', 'runtime_overlays', 'runtime_env', 'wp', 'debug', 'workspace_artifact_policy', 'artifacts_path' ];

	/** Objects for which an empty value means the same as none. */
	private const OBJECTS = [ 'target', 'tool_bridge', 'parent_tool_bridge', 'sandbox_tool_policy', 'policy', 'context', 'inherit', 'orchestrator', 'metadata', 'structured_artifacts', 'allowed_tools', 'expected_artifacts', 'runtime_task', 'site_seeds' ];

	/** Names under which other systems register their default agent. */
	private const DEFAULT_AGENTS = [ 'sandbox-agent', 'wp-codebox-sandbox', 'wp-codebox-agent' ];

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param SchemaStore     $schemas    Loader of the JSON schemas.
	 * @param Settings        $settings   Settings of the host (plugin settings page and constants).
	 * @param RefusedFields   $refused    Refuses fields that this version cannot carry out.
	 * @param RuntimeProfiles $profiles   Applies runtime profiles.
	 * @param Workspaces      $workspaces Converts workspaces to mounts.
	 */
	public function __construct(
		private readonly SchemaStore $schemas,
		private readonly Settings $settings,
		private readonly RefusedFields $refused = new RefusedFields(),
		private readonly RuntimeProfiles $profiles = new RuntimeProfiles(),
		private readonly Workspaces $workspaces = new Workspaces()
	) {}

	/**
	 * Returns the task with these fields only: those that the extension knows, `staged_files`, which `StagedFiles` resolves,
	 * and those of `PreviewPlan`.
	 *
	 * @param array<string, mixed> $input Task input that its schema accepts.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`, `wp_codebox_wordpress_invalid`, `wp_codebox_runtime_profile_unresolved`.
	 */
	public function known( array $input ): array {
		// The extension unpacks the documents in which other programs wrap a task, with the code of the command line.
		$given  = AgentTask::input( $input );
		$opened = $this->profiles->applied( $given );
		if ( $opened !== $given ) {
			$opened = AgentTask::input( $opened );
		}
		if ( $opened !== $input ) {
			// What an envelope, a profile or a filter added was not part of the input that WordPress validated.
			$opened = $this->schemas->valid( 'run-agent-task-input', $opened, 'task' );
		}
		$this->refused->check( $opened );
		return array_diff_key( $this->with_mode( $this->converted( $this->filled( $opened ) ) ), array_flip( self::CONVERTED ) );
	}

	/**
	 * Returns the task without empty texts and objects.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function filled( array $input ): array {
		$fields = $this->schemas->get( 'run-agent-task-input' )['properties'];
		foreach ( array_keys( array_filter( $fields, static fn( array $field ): bool => 'string' === ( $field['type'] ?? '' ) ) ) as $field ) {
			// An empty goal stays, so that the error names it.
			if ( '' === ( $input[ $field ] ?? null ) && 'goal' !== $field ) {
				unset( $input[ $field ] );
			}
		}
		foreach ( [ 'connectors', 'settings' ] as $field ) {
			if ( is_array( $input['inherit'][ $field ] ?? null ) ) {
				$input['inherit'][ $field ] = self::distinct( $input['inherit'][ $field ] );
			}
		}
		foreach ( self::OBJECTS as $field ) {
			if ( array_key_exists( $field, $input ) && in_array( $input[ $field ], [ [], null ], true ) ) {
				unset( $input[ $field ] );
			}
		}
		return $input;
	}

	/**
	 * Returns the distinct texts of a list without white space around them; other values stay for the extension to refuse.
	 *
	 * @param array<mixed> $list List.
	 * @return list<mixed>
	 */
	private static function distinct( array $list ): array {
		$texts = array_map( static fn( mixed $text ): mixed => is_string( $text ) ? trim( $text ) : $text, $list );
		return array_values( array_unique( array_filter( $texts, static fn( mixed $text ): bool => '' !== $text ), SORT_REGULAR ) );
	}

	/**
	 * Converts fields with a counterpart: workspaces, environment, debug settings, the default agent, notes.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function converted( array $input ): array {
		$mounts = $this->workspaces->mounts( $input );
		if ( [] !== $mounts ) {
			$input['mounts'] = [ ...array_values( (array) ( $input['mounts'] ?? [] ) ), ...$mounts ];
		}
		if ( ! empty( $input['runtime_env'] ) ) {
			$input['agent_env'] = (array) ( $input['agent_env'] ?? [] ) + array_map( 'strval', (array) $input['runtime_env'] );
		}
		if ( ! empty( $input['debug']['provider_plugin_paths'] ) ) {
			$input['provider_plugin_paths'] = self::distinct( [ ...(array) ( $input['provider_plugin_paths'] ?? [] ), ...(array) $input['debug']['provider_plugin_paths'] ] );
		}
		if ( in_array( $input['agent'] ?? '', self::DEFAULT_AGENTS, true ) && ! isset( $this->settings->agents()[ $input['agent'] ] ) ) {
			unset( $input['agent'] );
		}
		if ( ! empty( $input['workspace_artifact_policy'] ) ) {
			$input['metadata'] = (array) ( $input['metadata'] ?? [] ) + [ 'workspace_artifact_policy' => $input['workspace_artifact_policy'] ];
		}
		$notes = array_filter( array_map( static fn( mixed $row ): array => array_intersect_key( (array) $row, array_flip( [ 'target', 'metadata' ] ) ), array_values( (array) ( $input['staged_files'] ?? [] ) ) ) );
		if ( [] !== $notes ) {
			$input['context'] = (array) ( $input['context'] ?? [] ) + [ 'staged_files' => $notes ];
		}
		return $input;
	}

	/**
	 * Passes `mode` to the agent: every agent reads it in the context of its task, and an ability also gets it as input.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	private function with_mode( array $input ): array {
		if ( ! isset( $input['mode'] ) ) {
			return $input;
		}
		$input['context'] = (array) ( $input['context'] ?? [] ) + [ 'mode' => $input['mode'] ];
		if ( isset( $input['runtime_task'] ) ) {
			$input['runtime_task']['input'] = (array) ( $input['runtime_task']['input'] ?? [] ) + [ 'mode' => $input['mode'] ];
		}
		return $input;
	}
}
