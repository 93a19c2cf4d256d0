<?php
/**
 * Whose bundles count here.
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
 * Only this host's own key, or a verified key the settings name. Importing a bundle
 * changes nothing about that.
 */
final class BundleTrust {

	/**
	 * Wires the rule.
	 *
	 * @param Settings $settings Trusted keys.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Whether a signature counts.
	 *
	 * @param array<string, mixed> $signature `signature` of a verification.
	 */
	public function holds( array $signature ): bool {
		$status = (string) ( $signature['status'] ?? 'unsigned' );
		$key    = (string) ( $signature['key_id'] ?? '' );
		$named  = 'signed-by-known' === $status && '' !== $key && in_array( $key, $this->settings->trusted_keys(), true );
		return 'signed-by-this-host' === $status || $named;
	}

	/**
	 * Who signed a bundle and what of it, for a terminal.
	 *
	 * @param array<string, mixed> $signature `signature` of a verification.
	 */
	public static function words( array $signature ): string {
		$words = str_replace( '-', ' ', (string) ( $signature['status'] ?? 'unsigned' ) );
		// Signatures of earlier versions say nothing of keys such as `cases`.
		return 'files' === ( $signature['coverage'] ?? '' ) ? $words . ', but not every key of the manifest' : $words;
	}

	/**
	 * Refuses a bundle whose signature does not count.
	 *
	 * @param array<string, mixed> $signature `signature` of a verification.
	 * @param string               $sentence  What is said of it, with the status of its signature as `%s`.
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
