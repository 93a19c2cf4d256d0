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

defined( 'ABSPATH' ) || exit;

/**
 * Must-use plugins and drop-ins run in every request without an activation, and web server and PHP read their
 * configuration files from any directory.
 */
final class SensitiveFiles {

	/** Configuration files of web servers and PHP. */
	private const CONFIGURATION = [ '.htaccess', '.htpasswd', '.user.ini', 'php.ini', 'web.config' ];

	/**
	 * Fails when the change contains sensitive files and the approver did not confirm them.
	 *
	 * @param array<string, mixed> $payload Approved change.
	 * @throws Failure `wp_codebox_apply_confirmation_missing`.
	 */
	public function assert_confirmed( array $payload ): void {
		$files = $this->among( (array) $payload['changed_files'], (array) $payload['targets'] );
		if ( [] !== $files && true !== ( $payload['confirm_sensitive'] ?? false ) ) {
			throw Failure::because(
				ErrorCode::ApplyConfirmationMissing,
				__( 'The change contains must-use plugins, drop-ins, or configuration of the web server or of PHP, which take effect at once for the whole site; confirm these files as well.', 'codebox' ),
				[ __( 'Set "confirm_sensitive" to true, or give --confirm-sensitive at the shell.', 'codebox' ) ],
				[ 'files' => $files ]
			);
		}
	}

	/**
	 * Returns the paths of those changed files that are sensitive.
	 *
	 * @param array<mixed>          $changed Entries of changed-files.
	 * @param array<string, string> $targets Host directory by mount target.
	 * @return list<string>
	 */
	public function among( array $changed, array $targets ): array {
		$found = [];
		foreach ( $changed as $file ) {
			$host = ( $targets[ $file['mountTarget'] ?? '' ] ?? '' ) . '/' . ( $file['relativePath'] ?? '' );
			if ( self::is_sensitive( $host ) ) {
				$found[] = (string) $file['path'];
			}
		}
		return $found;
	}

	/**
	 * Checks whether a file is sensitive.
	 *
	 * @param string $host Host path.
	 */
	private static function is_sensitive( string $host ): bool {
		if ( in_array( strtolower( basename( $host ) ), self::CONFIGURATION, true ) ) {
			return true;
		}
		$must_use = realpath( WPMU_PLUGIN_DIR );
		if ( false !== $must_use && Site::is_within( $host, [ $must_use ] ) ) {
			return true;
		}
		require_once ABSPATH . 'wp-admin/includes/plugin.php';
		return realpath( WP_CONTENT_DIR ) === dirname( $host ) && isset( _get_dropins()[ basename( $host ) ] );
	}
}
