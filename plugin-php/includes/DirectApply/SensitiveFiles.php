<?php
/**
 * Files whose change needs a second confirmation.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Files that a program of the host or of the site runs or obeys by itself. The extension finds them by name
 * (git repositories, editor settings, server configuration and others), this class by their place on this site.
 */
final class SensitiveFiles {

	/**
	 * Fails when the change contains sensitive files and the approver did not confirm them.
	 *
	 * @param array<string, mixed> $payload Approved change.
	 * @throws Failure `wp_codebox_apply_confirmation_missing`.
	 */
	public function assert_confirmed( array $payload ): void {
		$files = $this->among( $payload );
		if ( [] !== $files && true !== ( $payload['confirm_sensitive'] ?? false ) ) {
			throw Failure::because(
				ErrorCode::ApplyConfirmationMissing,
				/* translators: %s: path of a file. */
				Sentence::of( __( 'The change contains files that WordPress, the web server or tools of this host run or obey by themselves, such as %s; confirm these files as well.', 'codebox' ), $files[0] ),
				[ __( 'Set "confirm_sensitive" to true, or give --confirm-sensitive at the shell.', 'codebox' ) ],
				[ 'files' => $files ]
			);
		}
	}

	/**
	 * Returns the paths of those changed files that are sensitive.
	 *
	 * @param array<string, mixed> $payload Approved change with `risks`, `changed_files` and `targets`.
	 * @return list<string>
	 */
	public function among( array $payload ): array {
		$named = array_column( array_filter( (array) ( $payload['risks'] ?? [] ), static fn( array $risk ): bool => ! empty( $risk['confirm'] ) ), 'path' );
		$found = [];
		foreach ( (array) $payload['changed_files'] as $file ) {
			$host = ( $payload['targets'][ $file['mountTarget'] ?? '' ] ?? '' ) . '/' . ( $file['relativePath'] ?? '' );
			if ( in_array( $file['path'], $named, true ) || self::runs_by_its_place( $host ) ) {
				$found[] = (string) $file['path'];
			}
		}
		return $found;
	}

	/**
	 * Checks whether WordPress runs a file in every request because of its place on this site.
	 *
	 * @param string $host Host path.
	 */
	private static function runs_by_its_place( string $host ): bool {
		$must_use = realpath( WPMU_PLUGIN_DIR );
		if ( false !== $must_use && Site::is_within( $host, [ $must_use ] ) ) {
			return true;
		}
		require_once ABSPATH . 'wp-admin/includes/plugin.php';
		return realpath( WP_CONTENT_DIR ) === dirname( $host ) && isset( _get_dropins()[ basename( $host ) ] );
	}
}
