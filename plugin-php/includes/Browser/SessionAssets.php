<?php
/**
 * What a browser session is served from.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** What a browser session is served from. */
interface SessionAssets {

	/**
	 * Returns addresses and sources of the engine for one session.
	 *
	 * @param string $scope      Scope of the sandbox below the assets.
	 * @param string $session_id Id of the session.
	 * @return array{client_module_url: string, remote_url: string, cors_proxy_url: string, isolation: string, provenance: array<string, mixed>, codebox: array<string, mixed>}
	 * @throws \WPCodebox\Failure `wp_codebox_browser_assets_missing`.
	 */
	public function contract( string $scope, string $session_id ): array;

	/**
	 * Returns the archives of the code that a session starts with.
	 *
	 * @param list<array{kind: string, slug: string}> $roots      Plugins, themes and bundles.
	 * @param string                                  $session_id Id of the session.
	 * @return list<array{target: string, path: string, archive: array{url: string, sha256: string, bytes: int}, overlay?: array<string, mixed>}>
	 * @throws \WPCodebox\Failure When a root is unknown or too large.
	 */
	public function roots( array $roots, string $session_id ): array;
}
