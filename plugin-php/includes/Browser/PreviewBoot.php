<?php
/**
 * Configuration with which a page starts a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** Callers have checked that the session belongs to the current user. */
final class PreviewBoot {

	/**
	 * Returns the configuration.
	 *
	 * @param SessionRecord        $record  Session.
	 * @param array<string, mixed> $runtime Prepared runtime.
	 * @param array<string, mixed> $lease   Lease of the preview.
	 * @return array<string, mixed> `wp-codebox/browser-preview-boot-config/v1`.
	 */
	public static function config( SessionRecord $record, array $runtime, array $lease ): array {
		$ref    = SiteDocuments::ref( $record->cache_key, $record->input_hash, 'recoverable', $record );
		$pinned = [
			'schema'        => 'wp-codebox/browser-preview-boot-config/v1',
			'session_id'    => $record->session_id,
			'scope'         => $runtime['scope'],
			'blueprint_ref' => $ref,
		] + SiteDocuments::FACTS + PlaygroundUrls::shown( $runtime['urls'] );
		$config = $pinned + [
			'isolation'      => $record->isolation,
			'preview'        => $lease,
			'runtime_access' => $runtime['access'],
			'contained_site' => array_intersect_key( SiteDocuments::site( $record, 'ready' ), array_flip( [ 'schema', 'site_id', 'preview_id', 'session_id', 'caller_id', 'status', 'persistence', 'source_digest', 'recovery', 'recovery_handle' ] ) ),
			'artifacts'      => [
				'base_url'    => '',
				'preview_url' => '',
			],
			'provenance'     => [
				'generated_by' => 'wp-codebox',
				'engine'       => $runtime['urls']['own'] ? 'own' : 'outside',
			],
		];
		/**
		 * Filters the configuration with which a page starts a session. Ids, scope, reference, facts and addresses stay.
		 *
		 * @param array<string, mixed> $config  Configuration, `wp-codebox/browser-preview-boot-config/v1`.
		 * @param array<string, mixed> $session Session: ids, caller, isolation and expiry.
		 */
		$filtered = apply_filters( 'wp_codebox_browser_preview_boot_config', $config, $record->to_array() );
		return $pinned + ( is_array( $filtered ) ? $filtered : $config );
	}
}
