<?php
/**
 * Abilities of WordPress sites that run in the visitor's browser.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Api;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Every sandbox of this version runs on the host, isolated by the kernel. A caller that asks for a site in the
 * visitor's browser gets an error that names the ability or command to use instead, not "unknown ability".
 */
final class BrowserSessions {

	/** What replaces an ability, by the ability's name without `wp-codebox/`. */
	private const INSTEAD = [
		'create-browser-playground-session'               => 'task',
		'create-browser-contained-site-session'           => 'held',
		'open-or-create-browser-contained-site'           => 'held',
		'get-browser-contained-site-status'               => 'status',
		'open-browser-contained-site'                     => 'held',
		'boot-browser-contained-site-session'             => 'held',
		'destroy-browser-contained-site-session'          => 'destroy',
		'hydrate-browser-blueprint-ref'                   => 'held',
		'preview-reuse-decision'                          => 'held',
		'preview-boot-ref'                                => 'held',
		'create-browser-task-contract'                    => 'task',
		'create-browser-materializer-contract'            => 'task',
		'replay-browser-viewport'                         => 'screenshot',
		'persist-browser-artifact'                        => 'import',
		'normalize-browser-artifact-bundle'               => 'import',
		'snapshot-browser-contained-site'                 => 'snapshot',
		'export-browser-contained-site'                   => 'bundle',
		'plan-browser-contained-site-apply'               => 'apply',
		'apply-browser-contained-site-plan'               => 'apply',
		'browser-contained-site-sync-delegation'          => 'sync',
		'browser-contained-site-sync-source-connect'      => 'sync',
		'browser-contained-site-sync-manifest'            => 'sync',
		'browser-contained-site-sync-export'              => 'bundle',
		'browser-contained-site-sync-apply-plan-generate' => 'apply',
		'browser-contained-site-sync-apply-plan-validate' => 'apply',
		'browser-contained-site-sync-apply'               => 'apply',
	];

	/**
	 * Returns the failure for an ability of browser sessions; null for every other name.
	 *
	 * @param string $ability Full name of an ability.
	 */
	public static function refusal( string $ability ): ?Failure {
		$name = str_starts_with( $ability, 'wp-codebox/' ) ? substr( $ability, 11 ) : '';
		if ( ! isset( self::INSTEAD[ $name ] ) ) {
			return null;
		}
		return Failure::because(
			ErrorCode::BrowserSessionsUnavailable,
			/* translators: %s: name of an ability. */
			Sentence::of( __( 'The ability "%s" belongs to WordPress sites that run in the visitor\'s browser. This version has no such sessions: its sandboxes run on the host.', 'codebox' ), $ability ),
			[ self::instead( self::INSTEAD[ $name ] ) ],
			[ 'ability' => $ability ]
		);
	}

	/**
	 * Returns the sentence that names the alternative.
	 *
	 * @param string $kind Kind of alternative, a value of `INSTEAD`.
	 */
	private static function instead( string $kind ): string {
		return match ( $kind ) {
			'task'       => __( 'Use run-agent-task: it runs the goal in a sandbox on the host and returns a bundle with the change.', 'codebox' ),
			'held'       => __( 'Use a held sandbox with a preview: "wp-codebox sandbox create --profile FILE", then "wp-codebox sandbox preview ID".', 'codebox' ),
			'status'     => __( 'Use get-run for a run, or "wp-codebox sandbox get ID" for a held sandbox.', 'codebox' ),
			'destroy'    => __( 'Use cancel-run for a run, or "wp-codebox sandbox destroy ID" for a held sandbox.', 'codebox' ),
			'screenshot' => __( 'Use the sandbox command wordpress.browser-probe in a recipe of "wp-codebox recipe-run".', 'codebox' ),
			'import'     => __( 'Use import-artifact-bundle for a bundle on the host, or run-agent-task to get a bundle.', 'codebox' ),
			'snapshot'   => __( 'Use "wp-codebox sandbox snapshot ID" for a held sandbox.', 'codebox' ),
			'bundle'     => __( 'The bundle of a run holds its change: use get-artifact, or export-artifact-bundle for an archive.', 'codebox' ),
			'apply'      => __( 'Use apply-artifact-preflight and apply-approved-artifact with the bundle of a run.', 'codebox' ),
			default      => __( 'Give the code as plugin, theme or mounts of run-agent-task; a held sandbox transfers files over its control socket.', 'codebox' ),
		};
	}
}
