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

/** Binds a reference to user, site, session and expiry: `<base64url of JSON>.<base64url of HMAC>`, signed with a key of this site. */
final class RefToken {

	/** Keeps these signatures apart from other HMACs under the same key. */
	private const PURPOSE = "wp-codebox/browser-blueprint-ref/v1\n";

	private const MAX = 2000;

	/**
	 * Makes the token of a reference.
	 *
	 * @param string        $ref    Reference.
	 * @param SessionRecord $record Session.
	 */
	public static function of( string $ref, SessionRecord $record ): string {
		$claims = self::encode( (string) wp_json_encode( [ $ref, $record->user_id, $record->blog_id, $record->session_id, $record->expires_at ] ) );
		return $claims . '.' . self::encode( self::signature( $claims ) );
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
		$parts = strlen( $token ) <= self::MAX ? explode( '.', $token ) : [];
		// Comparing the encoded form also refuses a second spelling of the same bytes.
		if ( 2 !== count( $parts ) || ! hash_equals( self::encode( self::signature( $parts[0] ) ), $parts[1] ) ) {
			throw self::tampered();
		}
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- a token in a URL, not obfuscation.
		[ $named, $user, $blog, $session, $expires ] = (array) json_decode( (string) base64_decode( strtr( $parts[0], '-_', '+/' ), true ), true ) + [ '', 0, 0, '', 0 ];
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
		return Failure::because( ErrorCode::BrowserBlueprintRefTampered, __( 'The token of this blueprint reference was not made by this site for it; open the site again.', 'codebox' ) );
	}

	/**
	 * Returns the HMAC of the encoded claims, as bytes.
	 *
	 * @param string $claims Encoded claims.
	 */
	private static function signature( string $claims ): string {
		return hash_hmac( 'sha256', self::PURPOSE . $claims, wp_salt( 'auth' ), true );
	}

	/**
	 * Encodes bytes as base64url without padding.
	 *
	 * @param string $bytes Bytes to encode.
	 */
	private static function encode( string $bytes ): string {
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- a token in a URL, not obfuscation.
		return rtrim( strtr( base64_encode( $bytes ), '+/', '-_' ), '=' );
	}
}
