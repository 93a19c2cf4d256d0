<?php
/**
 * Decides which signing keys this site trusts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Trusts only this host's own key and the key ids in the settings. Importing a bundle does not make its key
 * trusted. A signature on contents that a browser uploaded is never trusted alone: a user must confirm the contents.
 */
final class BundleTrust {

	/** Status of this host's signature on contents that a browser uploaded. */
	private const BROWSER = 'browser-origin';

	/**
	 * Creates the rule with its dependencies.
	 *
	 * @param Settings $settings Settings with the trusted keys.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Returns the ids of the trusted keys besides this host's own key. The extension gets them with each call that
	 * judges a signature.
	 *
	 * @return list<string>
	 */
	public function keys(): array {
		return $this->settings->trusted_keys();
	}

	/**
	 * Checks whether a signature is valid and from a trusted key.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 */
	public function holds( array $signature ): bool {
		$status = (string) ( $signature['status'] ?? 'unsigned' );
		$key    = (string) ( $signature['key_id'] ?? '' );
		$named  = 'signed-by-known' === $status && '' !== $key && in_array( $key, $this->settings->trusted_keys(), true );
		return 'signed-by-this-host' === $status || $named;
	}

	/**
	 * Checks whether a browser uploaded the contents, according to a valid signature.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 */
	public static function is_of_browser( array $signature ): bool {
		return 'browser' === ( $signature['origin'] ?? '' ) || str_starts_with( (string) ( $signature['status'] ?? '' ), self::BROWSER );
	}

	/**
	 * Checks whether a browser uploaded the contents and a trusted key signed them. Before an apply, a user must then
	 * confirm that a browser uploaded them.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 */
	public function holds_if_confirmed( array $signature ): bool {
		$known = self::BROWSER . '-known' === ( $signature['status'] ?? '' ) && in_array( (string) ( $signature['key_id'] ?? '' ), $this->settings->trusted_keys(), true );
		return self::BROWSER === ( $signature['status'] ?? '' ) || $known;
	}

	/**
	 * Fails unless a bundle may be applied: its signature is trusted, or a trusted key signed contents that a browser
	 * uploaded and the caller confirmed this origin.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 * @param string               $sentence  Error message with `%s` for the status of the signature.
	 * @param bool                 $confirmed Whether a user who may apply changes confirmed the origin.
	 * @throws Failure `wp_codebox_artifact_untrusted`, `wp_codebox_apply_browser_origin_unconfirmed`.
	 */
	public function assert_for_apply( array $signature, string $sentence, bool $confirmed ): void {
		if ( ! $this->holds_if_confirmed( $signature ) ) {
			$this->assert( $signature, $sentence );
			return;
		}
		if ( ! $confirmed ) {
			throw Failure::because(
				ErrorCode::ApplyBrowserOriginUnconfirmed,
				__( 'A browser uploaded the contents of this bundle, so this host cannot know which code made them; read the change, and confirm also that you accept a change from a browser.', 'codebox' ),
				[ __( 'Set "confirm_browser_origin" to true, or give --confirm-browser-origin at the shell.', 'codebox' ) ],
				[ 'signature' => (string) $signature['status'] ]
			);
		}
	}

	/**
	 * Describes the signature of a bundle for a terminal: the signer and the signed part.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 */
	public static function words( array $signature ): string {
		$words = str_replace( '-', ' ', (string) ( $signature['status'] ?? 'unsigned' ) );
		if ( self::is_of_browser( $signature ) ) {
			$words .= ', contents from a browser';
		}
		// Signatures of earlier versions do not cover keys such as `cases`.
		return 'files' === ( $signature['coverage'] ?? '' ) ? $words . ', except some fields of the manifest' : $words;
	}

	/**
	 * Fails for a bundle without a trusted signature.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 * @param string               $sentence  Error message with `%s` for the status of the signature.
	 * @throws Failure `wp_codebox_artifact_untrusted`.
	 */
	public function assert( array $signature, string $sentence ): void {
		if ( $this->holds( $signature ) ) {
			return;
		}
		$status = (string) ( $signature['status'] ?? 'unsigned' );
		throw Failure::because(
			ErrorCode::ArtifactUntrusted,
			Sentence::of( $sentence, $status ),
			[ __( 'Run the task again on this host, or add the id of the signing key to the option wp_codebox_trusted_keys.', 'codebox' ) ],
			[ 'signature' => $status ]
		);
	}
}
