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
 * Bundles of browser sessions are not stored yet. A caller that asks for it gets an error that names the ability to use
 * instead, not "unknown ability".
 */
final class BrowserSessions {

	/** Abilities without `wp-codebox/`. */
	private const MISSING = [ 'persist-browser-artifact', 'normalize-browser-artifact-bundle' ];

	/**
	 * Returns the failure for an ability of browser sessions; null for every other name.
	 *
	 * @param string $ability Full name of an ability.
	 */
	public static function refusal( string $ability ): ?Failure {
		$name = str_starts_with( $ability, 'wp-codebox/' ) ? substr( $ability, 11 ) : '';
		if ( ! in_array( $name, self::MISSING, true ) ) {
			return null;
		}
		return Failure::because(
			ErrorCode::BrowserSessionsUnavailable,
			/* translators: %s: name of an ability. */
			Sentence::of( __( 'The ability "%s" stores what a WordPress in the visitor\'s browser changed. This version does not store it.', 'codebox' ), $ability ),
			[ __( 'Use import-artifact-bundle for a bundle on the host, or run-agent-task to get a bundle.', 'codebox' ) ],
			[ 'ability' => $ability ]
		);
	}
}
