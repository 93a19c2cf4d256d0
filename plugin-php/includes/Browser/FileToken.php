<?php
/**
 * Token of a link to a file of a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Contains file, user, site, session and expiry, signed with a key of this site.
 */
final class FileToken {

	/** Keeps these signatures apart from other HMACs under the same key. */
	private const PURPOSE = 'wp-codebox/browser-file/v1';

	/** Maximum length of a token, in bytes. */
	private const MAX = 1024;

	/**
	 * Creates a token from its parts.
	 *
	 * @param string $sha256     Sha256 of the file.
	 * @param int    $user_id    User who may download it.
	 * @param string $site_id    Site that serves it.
	 * @param string $session_id Browser session that it belongs to.
	 * @param int    $expires_at Time at which the token expires, in seconds since 1970.
	 */
	public function __construct(
		public readonly string $sha256,
		public readonly int $user_id,
		public readonly string $site_id,
		public readonly string $session_id,
		public readonly int $expires_at
	) {}

	/** Returns the token as text for a URL. */
	public function text(): string {
		return SignedClaims::text( self::PURPOSE, [ $this->sha256, $this->user_id, $this->site_id, $this->session_id, $this->expires_at ] );
	}

	/**
	 * Reads a token and checks its signature, site and expiry.
	 *
	 * @param string $text    Text of the token.
	 * @param string $site_id Id of this site.
	 * @throws Failure `wp_codebox_browser_link_invalid`, `_foreign` or `_expired`.
	 */
	public static function read( string $text, string $site_id ): self {
		$claims = SignedClaims::read( self::PURPOSE, $text, self::MAX );
		if ( null === $claims ) {
			throw Failure::because( ErrorCode::BrowserLinkInvalid, __( 'This link to a file of a browser sandbox was not made by this site; open the sandbox again.', 'codebox' ) );
		}
		$token = new self( ...$claims );
		if ( ! hash_equals( $site_id, $token->site_id ) ) {
			throw self::foreign();
		}
		if ( $token->expires_at <= time() ) {
			throw Failure::because( ErrorCode::BrowserLinkExpired, __( 'This link to a file of a browser sandbox has expired; open the sandbox again.', 'codebox' ) );
		}
		return $token;
	}

	/** Builds the failure of a link that belongs to another user or site. */
	public static function foreign(): Failure {
		return Failure::because(
			ErrorCode::BrowserLinkForeign,
			__( 'This link to a file of a browser sandbox belongs to another user or site.', 'codebox' ),
			[ __( 'Log in as the user who opened the sandbox, or open a sandbox of your own.', 'codebox' ) ]
		);
	}
}
