<?php
/**
 * Token of a reference to a blueprint.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Binds a reference to user, site, session and expiry, signed with a key of this site. */
final class RefToken {

	/** Keeps these signatures apart from other HMACs under the same key. */
	private const PURPOSE = 'wp-codebox/browser-blueprint-ref/v1';

	/** Maximum length of a token, in bytes. */
	private const MAX = 2000;

	/**
	 * Makes the token of a reference.
	 *
	 * @param string        $ref    Reference.
	 * @param SessionRecord $record Session.
	 */
	public static function of( string $ref, SessionRecord $record ): string {
		return SignedClaims::text( self::PURPOSE, [ $ref, $record->user_id, $record->blog_id, $record->session_id, $record->expires_at ] );
	}

	/**
	 * Checks a token and returns the session that it names.
	 *
	 * @param string $token Token.
	 * @param string $ref   Reference that it must belong to; '' for the one in the token.
	 * @return array{ref: string, session_id: string}
	 * @throws Failure `wp_codebox_browser_blueprint_ref_tampered`, `_foreign` or `_expired`.
	 */
	public static function read( string $token, string $ref ): array {
		[ $named, $user, $blog, $session, $expires ] = SignedClaims::read( self::PURPOSE, $token, self::MAX ) ?? throw self::tampered();
		if ( '' !== $ref && ! hash_equals( (string) $named, $ref ) ) {
			throw self::tampered();
		}
		if ( get_current_user_id() !== $user || get_current_blog_id() !== $blog ) {
			throw RefFailure::foreign();
		}
		if ( $expires <= time() ) {
			throw RefFailure::expired();
		}
		return [
			'ref'        => (string) $named,
			'session_id' => (string) $session,
		];
	}

	/** Builds the failure of a token that this site did not make for this reference. */
	private static function tampered(): Failure {
		return Failure::because( ErrorCode::BrowserBlueprintRefTampered, __( 'The token was not made by this site for this blueprint reference; open the site in the browser again.', 'codebox' ) );
	}
}
