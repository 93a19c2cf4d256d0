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
 * Each ability has a method of its name with underscores: `get_run()` is `wp-codebox/get-run`. Some abilities
 * have more methods: `OTHER_NAMES` lists them. A method whose ability this version does not have returns
 * `wp_codebox_api_ability_not_supported`. The facade also works where WordPress has no Abilities API.
 */
final class WP_Codebox_API {

	/** The class has only static methods. */
	private function __construct() {}

	// Generated from abilities/definitions/ by `cargo xtask generate`: a method for each ability, and those of ext/tools/xtask/src/abilities/methods.rs.

	/** Ability by method, for methods whose name differs from the ability's. */
	private const OTHER_NAMES = [
		'browser_contained_site_status'  => 'wp-codebox/get-browser-contained-site-status',
		'capture_runner_workspace'       => 'wp-codebox/runner-workspace-capture',
		'create_browser_session'         => 'wp-codebox/create-browser-playground-session',
		'get_browser_session_status'     => 'wp-codebox/get-browser-contained-site-status',
		'import_artifact'                => 'wp-codebox/import-artifact-bundle',
		'normalize_artifact_bundle'      => 'wp-codebox/normalize-browser-artifact-bundle',
		'open_browser_session'           => 'wp-codebox/open-browser-contained-site',
		'open_or_create_browser_session' => 'wp-codebox/open-or-create-browser-contained-site',
		'persist_artifact'               => 'wp-codebox/persist-browser-artifact',
		'preflight_apply_artifact'       => 'wp-codebox/apply-artifact-preflight',
		'preflight_artifact_apply'       => 'wp-codebox/apply-artifact-preflight',
		'prepare_runner_workspace'       => 'wp-codebox/runner-workspace-prepare',
		'publish_runner_workspace'       => 'wp-codebox/runner-workspace-publish',
		'reimport_artifact'              => 'wp-codebox/reimport-artifact-bundle',
		'run_runner_workspace_command'   => 'wp-codebox/runner-workspace-command',
	];

	/**
	 * Passes the approved files of a verified bundle to the plugin of this site that applies changes.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function apply_approved_artifact( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-approved-artifact', $input );
	}

	/**
	 * Shows what applying selected files of a bundle would change, and fails where the apply would fail. Writes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function apply_artifact_preflight( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-artifact-preflight', $input );
	}

	/**
	 * Shows what an apply plan of a site in the browser would change. Applies nothing: only an approved bundle changes this host.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function apply_browser_contained_site_plan( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-browser-contained-site-plan', $input );
	}

	/**
	 * Returns the configuration with which a page starts a site in the browser; fails when the site cannot be recovered.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function boot_browser_contained_site_session( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/boot-browser-contained-site-session', $input );
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
	 * Says whether a site in the browser can be recovered: the status is "recoverable" or "miss". Changes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_status( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-browser-contained-site-status', $input );
	}

	/**
	 * Asks the plugin that synchronises sites in the browser to carry out an apply plan. The field "allow_host_mutation" needs the right to apply changes on this site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_apply( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-apply', $input );
	}

	/**
	 * Asks the plugin that synchronises sites in the browser for a plan that applies the changes of one such site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_apply_plan_generate( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-apply-plan-generate', $input );
	}

	/**
	 * Asks the plugin that synchronises sites in the browser to validate an apply plan.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_apply_plan_validate( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-apply-plan-validate', $input );
	}

	/**
	 * Says whether a plugin of this site synchronises sites in the browser, and lists the REST route and ability of each of its operations.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_delegation( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-delegation', $input );
	}

	/**
	 * Asks the plugin that synchronises sites in the browser to export one such site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_export( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-export', $input );
	}

	/**
	 * Asks the plugin that synchronises sites in the browser for the manifest of one such site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_manifest( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-manifest', $input );
	}

	/**
	 * Asks the plugin that synchronises sites in the browser to connect one such site to its source. That plugin decides what a source is.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function browser_contained_site_sync_source_connect( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/browser-contained-site-sync-source-connect', $input );
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
	 * Reads the changes in a runner workspace (a checkout of a repository) through the backend that this site configures.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> On failure `success` is false and `error` has code and message.
	 */
	public static function capture_runner_workspace( array $input ): array {
		return self::as_array( self::execute_ability( 'wp-codebox/runner-workspace-capture', $input ) );
	}

	/**
	 * Creates a disposable WordPress for the browser of the user, with a handle to open it again.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function create_browser_contained_site_session( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/create-browser-contained-site-session', $input );
	}

	/**
	 * Creates a browser session for a task that makes the files of a site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function create_browser_materializer_contract( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/create-browser-materializer-contract', $input );
	}

	/**
	 * Returns a document with which a page starts a disposable WordPress in the browser of the user. Nothing runs on this host.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function create_browser_playground_session( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/create-browser-playground-session', $input );
	}

	/**
	 * Returns a document with which a page starts a disposable WordPress in the browser of the user. Nothing runs on this host.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function create_browser_session( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/create-browser-playground-session', $input );
	}

	/**
	 * Creates a browser session for a task with phases, which the page executes.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function create_browser_task_contract( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/create-browser-task-contract', $input );
	}

	/**
	 * Ends a browser session: its references and links do not work any more.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function destroy_browser_contained_site_session( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/destroy-browser-contained-site-session', $input );
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
	 * Returns the approved files of a verified bundle, as a patch or as a zip archive of their new contents.
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
	 * Exports a bundle as an archive. The same bundle always gives an archive with the same bytes.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function export_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/export-artifact-bundle', $input );
	}

	/**
	 * Says how a site in the browser is exported. Its contents are in the browser, so this host exports nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function export_browser_contained_site( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/export-browser-contained-site', $input );
	}

	/**
	 * Reads one bundle: changed files, review summary and check results.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_artifact( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-artifact', $input );
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
	 * Says whether a site in the browser can be recovered: the status is "recoverable" or "miss". Changes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_browser_contained_site_status( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-browser-contained-site-status', $input );
	}

	/**
	 * Says whether a site in the browser can be recovered: the status is "recoverable" or "miss". Changes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function get_browser_session_status( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/get-browser-contained-site-status', $input );
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
	 * Returns the blueprint of a browser session to the user who owns it.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function hydrate_browser_blueprint_ref( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/hydrate-browser-blueprint-ref', $input );
	}

	/**
	 * Imports a bundle from the host or from an archive after verifying it. Only its signature decides whether it is trusted.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function import_artifact( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/import-artifact-bundle', $input );
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
	public static function inspect_artifact( array $input ): array|WP_Error {
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
	 * Checks documents that a browser made and returns them in the standard format, with sizes and digests. Stores nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function normalize_artifact_bundle( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/normalize-browser-artifact-bundle', $input );
	}

	/**
	 * Checks documents that a browser made and returns them in the standard format, with sizes and digests. Stores nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function normalize_browser_artifact_bundle( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/normalize-browser-artifact-bundle', $input );
	}

	/**
	 * Returns what a page needs to start a site in the browser again, or why the site cannot be recovered.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function open_browser_contained_site( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/open-browser-contained-site', $input );
	}

	/**
	 * Returns what a page needs to start a site in the browser again, or why the site cannot be recovered.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function open_browser_session( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/open-browser-contained-site', $input );
	}

	/**
	 * Opens a site in the browser or creates a new one. The field "mode" says which: open-only, open-or-create or prepare-new.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function open_or_create_browser_contained_site( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/open-or-create-browser-contained-site', $input );
	}

	/**
	 * Opens a site in the browser or creates a new one. The field "mode" says which: open-only, open-or-create or prepare-new.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function open_or_create_browser_session( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/open-or-create-browser-contained-site', $input );
	}

	/**
	 * Stores files that a browser uploaded as a bundle. The host computes the change from its own copy of the code; the bundle is marked as coming from a browser, and applying it needs a further confirmation.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function persist_artifact( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/persist-browser-artifact', $input );
	}

	/**
	 * Stores files that a browser uploaded as a bundle. The host computes the change from its own copy of the code; the bundle is marked as coming from a browser, and applying it needs a further confirmation.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function persist_browser_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/persist-browser-artifact', $input );
	}

	/**
	 * Lists the changes of a site in the browser as a plan. Changes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function plan_browser_contained_site_apply( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/plan-browser-contained-site-apply', $input );
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
	 * Shows what applying selected files of a bundle would change, and fails where the apply would fail. Writes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function preflight_artifact_apply( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/apply-artifact-preflight', $input );
	}

	/**
	 * Lets the backend that is set up on this site check out a repository. Without a backend, the answer has the status "unavailable".
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> On failure `success` is false and `error` has code and message.
	 */
	public static function prepare_runner_workspace( array $input ): array {
		return self::as_array( self::execute_ability( 'wp-codebox/runner-workspace-prepare', $input ) );
	}

	/**
	 * Returns configuration and blueprint reference of a site in the browser; fails when the site cannot be recovered.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function preview_boot_ref( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/preview-boot-ref', $input );
	}

	/**
	 * Says whether a page can go on with a site in the browser, load it again, or needs a new one. Changes nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function preview_reuse_decision( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/preview-reuse-decision', $input );
	}

	/**
	 * Lets the backend that is set up on this site publish the change of a runner workspace as a branch or pull request. Without a backend nothing is published.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> On failure `success` is false and `error` has code and message.
	 */
	public static function publish_runner_workspace( array $input ): array {
		return self::as_array( self::execute_ability( 'wp-codebox/runner-workspace-publish', $input ) );
	}

	/**
	 * Imports a known bundle again and replaces a damaged copy.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function reimport_artifact( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/reimport-artifact-bundle', $input );
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
	 * Checks the request and answers with the status "unsupported": sandboxes of this version do not restore archives of sites.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function replay_browser_viewport( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/replay-browser-viewport', $input );
	}

	/**
	 * Passes a task to a plugin of this site that takes delegated tasks. Without such a plugin, the answer has the status "unavailable".
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function request_host_delegation( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/request-host-delegation', $input );
	}

	/**
	 * Shows what a task needs (provider, model, components, secrets, connectors) and whether this site has it. Starts nothing and shows no secret.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> On failure `success` is false and `error` has code and message.
	 */
	public static function resolve_runtime_requirements( array $input ): array {
		return self::as_array( self::execute_ability( 'wp-codebox/resolve-runtime-requirements', $input ) );
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
	 * Restores the files that this plugin itself changed when it applied a bundle. A file that changed since is listed and left as it is.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function rollback_artifact( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/rollback-artifact', $input );
	}

	/**
	 * Runs a coding agent against a plugin or theme in a disposable sandbox and returns a bundle with the change, or after 20 seconds a handle of the run, which continues. The site is not changed.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task', $input );
	}

	/**
	 * Runs tasks one after the other, each in its own disposable sandbox, and waits until the last one ends. An invalid or failing task is reported as failed; the other tasks still run.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_batch( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task-batch', $input );
	}

	/**
	 * Runs several agent tasks (workers), each in its own disposable sandbox and in parallel as far as their dependencies permit, waits until the last one ends and aggregates the results. With an invalid plan of workers none starts.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_agent_task_fanout( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-agent-task-fanout', $input );
	}

	/**
	 * Runs the cases of a suite in a WordPress of a disposable sandbox. Nothing runs on this site; a suite that must run there is answered with the status "unsupported".
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_fuzz_suite( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-fuzz-suite', $input );
	}

	/**
	 * Lets the backend that is set up on this site run a command in a runner workspace (a checkout of a repository). This plugin runs nothing itself.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> On failure `success` is false and `error` has code and message.
	 */
	public static function run_runner_workspace_command( array $input ): array {
		return self::as_array( self::execute_ability( 'wp-codebox/runner-workspace-command', $input ) );
	}

	/**
	 * Runs a workflow of an agent package in a disposable sandbox, or in the runtime that a plugin of this site provides.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_runtime_package( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-runtime-package', $input );
	}

	/**
	 * Runs a task in the runtime that it names: in a sandbox of this host like run-agent-task, or in a runtime of a plugin of this site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_runtime_task( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-runtime-task', $input );
	}

	/**
	 * Runs commands in order in a WordPress of a disposable sandbox and returns what each one printed. Nothing runs on this site.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function run_wordpress_workload( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/run-wordpress-workload', $input );
	}

	/**
	 * Reads the changes in a runner workspace (a checkout of a repository) through the backend that this site configures.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function runner_workspace_capture( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/runner-workspace-capture', $input );
	}

	/**
	 * Lets the backend that is set up on this site run a command in a runner workspace (a checkout of a repository). This plugin runs nothing itself.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function runner_workspace_command( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/runner-workspace-command', $input );
	}

	/**
	 * Lets the backend that is set up on this site check out a repository. Without a backend, the answer has the status "unavailable".
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function runner_workspace_prepare( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/runner-workspace-prepare', $input );
	}

	/**
	 * Lets the backend that is set up on this site publish the change of a runner workspace as a branch or pull request. Without a backend nothing is published.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function runner_workspace_publish( array $input = [] ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/runner-workspace-publish', $input );
	}

	/**
	 * Says how the contents of a site in the browser are captured. They are in the browser, so this host captures nothing.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function snapshot_browser_contained_site( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/snapshot-browser-contained-site', $input );
	}

	/**
	 * Checks an apply of selected files and passes it to the plugin of this site that stores pending actions. The target stays unchanged until a user accepts the action.
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function stage_artifact_apply( array $input ): array|WP_Error {
		return self::execute_ability( 'wp-codebox/stage-artifact-apply', $input );
	}

	// End of the generated methods.

	/**
	 * Runs any ability of this plugin.
	 *
	 * @param string               $ability_name Ability name with or without the leading `wp-codebox/`.
	 * @param array<string, mixed> $input        Ability input.
	 * @return array<string, mixed>|WP_Error `wp_codebox_api_ability_not_supported` when no ability has this
	 *   name.
	 */
	public static function execute_ability( string $ability_name, array $input = [] ): array|WP_Error {
		return Plugin::registrar()->run_trusted( str_contains( $ability_name, '/' ) ? $ability_name : 'wp-codebox/' . $ability_name, $input );
	}

	/**
	 * Describes this installation: versions, whether a sandbox can start, capabilities, abilities and schemas.
	 *
	 * @param array<string, mixed> $input Ignored.
	 * @return array<string, mixed> `wp-codebox/runtime-descriptor/v1`.
	 */
	public static function runtime_descriptor( array $input = [] ): array {
		return Plugin::facts()->descriptor();
	}

	/**
	 * Lists what this plugin promises to callers: abilities with their schemas, methods of this class, and the
	 * digest over all schemas.
	 *
	 * @return array<string, mixed> `wp-codebox/runtime-contract-manifest/v1`.
	 */
	public static function runtime_contract_manifest(): array {
		return Plugin::facts()->manifest();
	}

	/**
	 * Returns the values that documents of the contract share: status words, error codes and digest rules.
	 *
	 * @return array<string, mixed>
	 */
	public static function public_contract_primitives(): array {
		return Plugin::facts()->primitives();
	}

	/**
	 * Describes what this installation offers to fuzz suites.
	 *
	 * @param array<string, mixed> $input Ignored.
	 * @return array<string, mixed> `wp-codebox/wordpress-fuzz-runtime-contract/v1`.
	 */
	public static function wordpress_fuzz_runtime_contract( array $input = [] ): array {
		return Plugin::facts()->fuzz_contract();
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

	/**
	 * Returns the answer of an ability as an array, for methods that never return a `WP_Error`.
	 *
	 * @param array<string, mixed>|WP_Error $answer Answer of the ability.
	 * @return array<string, mixed>
	 */
	private static function as_array( array|WP_Error $answer ): array {
		if ( ! is_wp_error( $answer ) ) {
			return $answer;
		}
		$status = (int) ( ( (array) $answer->get_error_data() )['status'] ?? 500 );
		return [
			'success'      => false,
			'status'       => in_array( $status, [ 404, 501, 503 ], true ) ? 'unavailable' : 'failed',
			'failure_type' => match ( $status ) {
				400           => 'invalid_request',
				404, 501, 503 => 'backend_unavailable',
				default       => 'backend_error',
			},
			'error'        => [
				'code'    => (string) $answer->get_error_code(),
				'message' => $answer->get_error_message(),
				'data'    => (array) $answer->get_error_data(),
			],
		];
	}
}
