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
	 * Hands the approved files of a verified bundle to the plugin of this site that applies changes.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function apply_approved_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-approved-artifact', $input );
	}

	/**
	 * Shows what applying some changed files of a bundle would hand over, and refuses what would be refused then. Writes nothing.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function preflight_apply_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-artifact-preflight', $input );
	}

	/**
	 * Has a connector of this site carry a request out for a sandbox in a browser. Its credentials stay on this site.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_connector_request( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-connector-request', $input );
	}

	/**
	 * Asks a run to stop; what it has changed so far is kept as a bundle.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function cancel_run( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/cancel-run', $input );
	}

	/**
	 * Deletes a bundle for good, a broken one too.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function discard_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/discard-artifact', $input );
	}

	/**
	 * Has a provider adapter of this site carry a request out: the older way, for callers that need its answer's shape. Use browser-connector-request instead.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function execute_browser_provider_request( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/execute-browser-provider-request', $input );
	}

	/**
	 * Gives a bundle out as a deterministic archive.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function export_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/export-artifact-bundle', $input );
	}

	/**
	 * Shows the patch of each changed file of a bundle that verifies.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact_diff( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-artifact-diff', $input );
	}

	/**
	 * Reads one bundle: what changed, the review summary and the results of the checks.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-artifact', $input );
	}

	/**
	 * Reads one run and, when it has ended, what it came to.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_run( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-run', $input );
	}

	/**
	 * Takes a verified bundle in from the host or from an archive. It is trusted no more than its signature.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function import_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/import-artifact-bundle', $input );
	}

	/**
	 * Reads one bundle and verifies it: hashes, identity, listed files and signature.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function inspect_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/inspect-artifact', $input );
	}

	/**
	 * Lists the bundles that runs on this site left, newest first.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_artifacts( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-artifacts', $input );
	}

	/**
	 * Reads the audit log of this site and says whether its hash chain is whole.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_audit_records( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-audit-records', $input );
	}

	/**
	 * Reads what a run has said and done after a cursor; ask again with the cursor of the answer while the run goes on.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_run_events( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-run-events', $input );
	}

	/**
	 * Lists runs of this site, newest first: your own, or all of them if you may review.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function list_runs( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/list-runs', $input );
	}

	/**
	 * Takes a known bundle in again and replaces a copy that is no longer intact.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function reimport_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/reimport-artifact-bundle', $input );
	}

	/**
	 * Runs the task of a bundle again in a fresh sandbox, against the code this site has now, and says what differs. The site is not touched.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function replay_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/replay-artifact', $input );
	}

	/**
	 * Approves a change (which applies it and needs that capability), rejects it, or requests changes. A broken bundle can be rejected too.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function review_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/review-artifact', $input );
	}

	/**
	 * Runs tasks one after the other, each in a disposable sandbox of its own, and waits for the last. A task that is wrong or fails is a failed row; the others run.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_batch( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task-batch', $input );
	}

	/**
	 * Runs workers that may depend on each other, some at once, each in a disposable sandbox of its own, waits for the last and says what they come to together. A plan that is wrong starts nothing.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_fanout( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task-fanout', $input );
	}

	/**
	 * Runs a coding agent against a plugin or theme in a disposable sandbox and answers with a bundle that holds the change, or after 20 seconds with a handle of the run that goes on. The site is not touched.
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task', $input );
	}

	/**
	 * Checks an apply of some changed files and hands it to the plugin of this site that keeps pending actions. Nothing is written to the target before somebody accepts.
	 * @param array<string, mixed> $input Ability input.
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
