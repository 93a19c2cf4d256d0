<?php
/**
 * Facade for other plugins.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Plugin;

defined( 'ABSPATH' ) || exit;

/**
 * Offers every ability as a static method for PHP code of this site.
 *
 * Trust rules for callers:
 *
 * - **No capability check.** The caller is code of this site and is responsible for the user on whose behalf
 *   it calls. For input from a request, use the ability itself (`wp_get_ability( ... )->execute()`), which
 *   checks capabilities.
 * - Behaviour that depends on the user uses the current user: the runs that `list_runs()` shows, the approver
 *   of `review_artifact()`, the owner of the run that `replay_artifact()` starts.
 * - The ability's schema validates the input, and unknown fields are refused.
 * - Mounts and targets follow the rules for users: installed plugins and themes, and the directories of
 *   `wp_codebox.mount_roots`. The wider rights of WP-CLI's operator do not apply.
 * - Policy, limits, verification, signatures and the target check apply as for every other caller.
 * - The audit log and a bundle's provenance name the current user, or record that there is none.
 * - A failure is returned as a `WP_Error` whose data has `status`; no method throws.
 * - Core's hooks around abilities (`wp_before_execute_ability` and the like) do not run.
 *
 * A method name is the ability name with underscores: `get_run()` is `wp-codebox/get-run`. The only exception
 * is `preflight_apply_artifact()` for `wp-codebox/apply-artifact-preflight`. The facade also works where
 * WordPress has no Abilities API.
 */
final class WP_Codebox_API {

	/** Ability by method, for methods whose name differs from the ability's. */
	private const OTHER_NAMES = [ 'preflight_apply_artifact' => 'wp-codebox/apply-artifact-preflight' ];

	/** The class has only static methods. */
	private function __construct() {}

	// Generated from abilities/definitions/ by `cargo xtask generate`: a method for each ability.

	/**
	 * Passes the approved files of a verified bundle to the plugin of this site that applies changes.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function apply_approved_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-approved-artifact', $input );
	}

	/**
	 * Shows what applying selected files of a bundle would change, and fails where the apply would fail. Writes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function preflight_apply_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-artifact-preflight', $input );
	}

	/**
	 * Sends a request of a sandbox in a browser through a connector of this site. The credentials stay on this site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_connector_request( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-connector-request', $input );
	}

	/**
	 * Requests cancellation of a run; the changes made so far are stored as a bundle.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function cancel_run( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/cancel-run', $input );
	}

	/**
	 * Deletes a bundle permanently, even a damaged one.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function discard_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/discard-artifact', $input );
	}

	/**
	 * Returns approved files of a bundle that verifies as patch or as zip archive of their new contents.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function download_approved_files( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/download-approved-files', $input );
	}

	/**
	 * Sends a request through a provider adapter of this site. Legacy ability for callers that need its response format; use browser-connector-request instead.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function execute_browser_provider_request( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/execute-browser-provider-request', $input );
	}

	/**
	 * Exports a bundle as a deterministic archive.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function export_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/export-artifact-bundle', $input );
	}

	/**
	 * Shows the patch of each changed file of a bundle that verifies.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact_diff( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-artifact-diff', $input );
	}

	/**
	 * Reads one bundle: changed files, review summary and check results.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-artifact', $input );
	}

	/**
	 * Reads one run and, after its end, its result.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_run( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-run', $input );
	}

	/**
	 * Imports a bundle from the host or from an archive after verifying it. Only its signature decides whether it is trusted.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function import_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/import-artifact-bundle', $input );
	}

	/**
	 * Reads one bundle and verifies it: hashes, identity, listed files and signature.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function inspect_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/inspect-artifact', $input );
	}

	/**
	 * Lists decisions, applies and roll backs of all bundles of this site from the audit log, newest first.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_artifact_history( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-artifact-history', $input );
	}

	/**
	 * Lists the bundles created by runs on this site, newest first.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_artifacts( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-artifacts', $input );
	}

	/**
	 * Reads the audit log of this site and verifies its hash chain.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_audit_records( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-audit-records', $input );
	}

	/**
	 * Reads the events of a run after a cursor. Call again with the returned cursor while the run is active.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_run_events( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-run-events', $input );
	}

	/**
	 * Lists runs of this site, newest first: your own, or all of them if you may review.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_runs( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-runs', $input );
	}

	/**
	 * Imports a known bundle again and replaces a damaged copy.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function reimport_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/reimport-artifact-bundle', $input );
	}

	/**
	 * Runs the task of a bundle again in a new sandbox, against this site's current code, and lists the differences. The site is not changed.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function replay_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/replay-artifact', $input );
	}

	/**
	 * Approves a change (which also applies it and needs the apply capability), rejects it, or requests changes. A damaged bundle can be rejected too.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function review_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/review-artifact', $input );
	}

	/**
	 * Restores the files that direct apply wrote from a bundle. A file that changed since is listed and left as it is.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function rollback_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/rollback-artifact', $input );
	}

	/**
	 * Runs tasks one after the other, each in its own disposable sandbox, and waits until the last one ends. An invalid or failing task becomes a failed row; the other tasks still run.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_batch( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task-batch', $input );
	}

	/**
	 * Runs workers with dependencies, several in parallel, each in its own disposable sandbox, waits until the last one ends and aggregates the results. No worker starts when the plan is invalid.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_fanout( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task-fanout', $input );
	}

	/**
	 * Runs a coding agent against a plugin or theme in a disposable sandbox and returns a bundle with the change, or after 20 seconds a handle of the run, which continues. The site is not changed.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task', $input );
	}

	/**
	 * Checks an apply of selected files and passes it to the plugin of this site that stores pending actions. The target stays unchanged until a user accepts the action.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function stage_artifact_apply( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/stage-artifact-apply', $input );
	}

	// End of the generated methods.

	/**
	 * Runs any ability of this plugin.
	 *
	 * @param string               $name  Ability name with or without the leading `wp-codebox/`.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error `wp_codebox_api_ability_not_supported` when no ability has this
	 *   name.
	 */
	public static function execute_ability( string $name, array $input = [] ): array|WP_Error {
		return Plugin::registrar()->run_trusted( str_contains( $name, '/' ) ? $name : 'wp-codebox/' . $name, $input );
	}

	/**
	 * Lists the callable abilities by name.
	 *
	 * @return array<string, array{label: string, description: string, input_schema: string, output_schemas: list<string>, capabilities: list<string>, scopes: list<string>, annotations: array<string, bool>}>
	 */
	public static function public_abilities(): array {
		return Plugin::registrar()->catalogue();
	}

	/**
	 * Returns every schema of the contract by name, as JSON Schema documents.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	public static function public_contract_schemas(): array {
		$schemas = Plugin::schemas();
		$names   = $schemas->names();
		return array_combine( $names, array_map( [ $schemas, 'document' ], $names ) );
	}

	/**
	 * Returns the name of the ability behind a method.
	 *
	 * @param string $method Name of a method of this class.
	 */
	public static function ability( string $method ): string {
		return self::OTHER_NAMES[ $method ] ?? 'wp-codebox/' . str_replace( '_', '-', $method );
	}
}
