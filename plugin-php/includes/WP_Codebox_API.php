<?php
/**
 * The facade for other plugins.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Plugin;

defined( 'ABSPATH' ) || exit;

/**
 * Every ability as a static method, for code of this site.
 *
 * What the caller has to know about trust:
 *
 * - **Nobody is asked for a capability.** Whoever calls is code of this site and answers for the
 *   user on whose behalf it calls. For input that comes from a request use the ability itself
 *   (`wp_get_ability( ... )->execute()`), which asks.
 * - What an operation itself makes depend on who asks stays so, and the current user counts: whose runs
 *   `list_runs()` shows, who approves in `review_artifact()`, whose run `replay_artifact()` repeats.
 * - Input is validated by the schema of the ability all the same, and unknown fields are refused.
 * - Mounts and targets follow the rules for users: installed plugins and themes, and the
 *   directories of `wp_codebox.mount_roots`. The wider rights of WP-CLI's operator do not exist here.
 * - Policy, limits, verification, signatures and the target check hold as everywhere.
 * - The audit log and a bundle's provenance name the current user, or that there is none.
 * - A failure is a `WP_Error` whose data holds `status`; nothing is thrown.
 * - Core's hooks around abilities (`wp_before_execute_ability` and the like) do not run.
 *
 * A method is its ability with underscores, so the two cannot drift: `get_run()` is `wp-codebox/get-run`.
 * The one other order of words is `preflight_apply_artifact()` for `wp-codebox/apply-artifact-preflight`.
 * It also works where WordPress has no Abilities API.
 */
final class WP_Codebox_API {

	/** Methods whose name is not that of their ability. */
	private const OTHER_NAMES = [ 'preflight_apply_artifact' => 'wp-codebox/apply-artifact-preflight' ];

	/** Nothing to hold. */
	private function __construct() {}

	/**
	 * Runs a coding agent against a plugin or theme in a sandbox.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Runs several tasks one after the other, each in a sandbox of its own.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_batch( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Runs several tasks at once, with dependencies between them.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_fanout( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * What is known of a run.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_run( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Runs of this site, newest first.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_runs( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Events of a run after a cursor.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_run_events( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Asks a run to stop; what it changed so far is kept.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function cancel_run( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Bundles of this site, newest first.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_artifacts( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * One bundle, as far as it can be read.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * One bundle and what the verifier says of it.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function inspect_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * What a bundle changes, file by file.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact_diff( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * What an apply would hand over, and whether it may.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function preflight_apply_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Hands an approved change to a plugin that keeps pending actions.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function stage_artifact_apply( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Hands the approved part of a change to the plugin that applies it.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function apply_approved_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Approves, rejects or sends back a change.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function review_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Deletes a bundle.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function discard_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Takes a bundle from elsewhere into this site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function import_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Takes a bundle again that this site may hold already.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function reimport_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * A bundle as an archive.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function export_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Runs the task of a bundle again and compares.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function replay_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Decisions of this site, in order.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_audit_records( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Has a connector of this site carry a request out.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_connector_request( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Has an adapter of this site carry a provider request out, the older way.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function execute_browser_provider_request( array $input = [] ): array|WP_Error {
		return self::execute_ability( self::ability( __FUNCTION__ ), $input );
	}

	/**
	 * Runs any ability of this plugin.
	 *
	 * @param string               $name  With or without the leading `wp-codebox/`.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error `wp_codebox_api_ability_not_supported` when there is none of this name.
	 */
	public static function execute_ability( string $name, array $input = [] ): array|WP_Error {
		return Plugin::registrar()->run_trusted( str_contains( $name, '/' ) ? $name : 'wp-codebox/' . $name, $input );
	}

	/**
	 * What there is to call, by name.
	 *
	 * @return array<string, array{label: string, description: string, input_schema: string, output_schemas: list<string>, capabilities: list<string>, scopes: list<string>, annotations: array<string, bool>}>
	 */
	public static function public_abilities(): array {
		return Plugin::registrar()->catalogue();
	}

	/**
	 * Every schema of the contract by its name, as JSON Schema documents.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	public static function public_contract_schemas(): array {
		$schemas = Plugin::schemas();
		$names   = $schemas->names();
		return array_combine( $names, array_map( [ $schemas, 'document' ], $names ) );
	}

	/**
	 * Name of the ability behind a method.
	 *
	 * @param string $method Method of this class.
	 */
	public static function ability( string $method ): string {
		return self::OTHER_NAMES[ $method ] ?? 'wp-codebox/' . str_replace( '_', '-', $method );
	}
}
