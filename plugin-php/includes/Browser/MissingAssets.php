<?php
/**
 * Assets of an installation without the files of browser sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Refuses every session, because this installation has no engine. */
final class MissingAssets implements SessionAssets {

	/**
	 * Fails.
	 *
	 * @param string $scope      Scope of the sandbox below the assets.
	 * @param string $session_id Id of the session.
	 * @throws Failure `wp_codebox_browser_assets_missing`.
	 */
	public function contract( string $scope, string $session_id ): array {
		throw self::failure();
	}

	/**
	 * Fails.
	 *
	 * @param array<mixed> $roots      Plugins, themes and bundles.
	 * @param string       $session_id Id of the session.
	 * @throws Failure `wp_codebox_browser_assets_missing`.
	 */
	public function roots( array $roots, string $session_id ): array {
		throw self::failure();
	}

	/** Builds the failure. */
	private static function failure(): Failure {
		return Failure::because(
			ErrorCode::BrowserAssetsMissing,
			__( 'This site does not have the program files that run sandboxes in a browser.', 'codebox' ),
			[ __( 'Install them: docs/browser-sessions-setup.md says how.', 'codebox' ) ]
		);
	}
}
