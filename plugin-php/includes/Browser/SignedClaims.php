<?php
/**
 * Claims that this site signed.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** A list as text for a URL, signed with a key of this site: `<base64url of JSON>.<base64url of HMAC>`. */
final class SignedClaims {

	/**
	 * Returns claims as signed text.
	 *
	 * @param string           $purpose Keeps these signatures apart from other HMACs under the same key.
	 * @param list<int|string> $claims  Claims.
	 */
	public static function text( string $purpose, array $claims ): string {
		$encoded = self::encode( (string) wp_json_encode( $claims ) );
		return $encoded . '.' . self::signature( $purpose, $encoded );
	}

	/**
	 * Returns the claims in a text; null when this site did not sign it for this purpose.
	 *
	 * @param string $purpose Purpose that `text()` got.
	 * @param string $text    Text.
	 * @param int    $most    Maximum length of the text, in bytes.
	 * @return list<int|string>|null
	 */
	public static function read( string $purpose, string $text, int $most ): ?array {
		$parts = strlen( $text ) <= $most ? explode( '.', $text ) : [];
		// The signatures are compared as base64 text, because several base64 texts can decode to the same bytes.
		if ( 2 !== count( $parts ) || ! hash_equals( self::signature( $purpose, $parts[0] ), $parts[1] ) ) {
			return null;
		}
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- a token in a URL, not obfuscation.
		$claims = json_decode( (string) base64_decode( strtr( $parts[0], '-_', '+/' ), true ), true );
		return is_array( $claims ) ? array_values( $claims ) : null;
	}

	/**
	 * Returns the HMAC of encoded claims as text.
	 *
	 * @param string $purpose Purpose.
	 * @param string $encoded Encoded claims.
	 */
	private static function signature( string $purpose, string $encoded ): string {
		return self::encode( hash_hmac( 'sha256', $purpose . "\n" . $encoded, wp_salt( 'auth' ), true ) );
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
