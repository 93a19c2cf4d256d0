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
 * trusted.
 */
final class BundleTrust {

	/**
	 * Creates the rule with its dependencies.
	 *
	 * @param Settings $settings Settings with the trusted keys.
	 */
	public function __construct( private readonly Settings $settings ) {}

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
	 * Describes the signature of a bundle for a terminal: the signer and the signed part.
	 *
	 * @param array<string, mixed> $signature Field `signature` of a verification report.
	 */
	public static function words( array $signature ): string {
		$words = str_replace( '-', ' ', (string) ( $signature['status'] ?? 'unsigned' ) );
		// Signatures of earlier versions do not cover keys such as `cases`.
		return 'files' === ( $signature['coverage'] ?? '' ) ? $words . ', but not every key of the manifest' : $words;
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
			[ __( 'Run the task again on this host, or name the signing key in the option wp_codebox_trusted_keys.', 'codebox' ) ],
			[ 'signature' => $status ]
		);
	}
}
