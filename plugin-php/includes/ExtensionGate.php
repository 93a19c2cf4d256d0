<?php
/**
 * Checks that the native extension is loaded and fits this plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Host\ServedDirectories;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * Plugin and extension are installed separately. Each has a version and a digest over the schemas it was
 * built from; no run starts unless both agree. The check is cheap and never throws.
 */
final class ExtensionGate {

	/**
	 * Creates the gate with its dependencies.
	 *
	 * @param string $version Version of the plugin.
	 * @param string $digest  Digest over the schemas of the plugin.
	 */
	public function __construct(
		private readonly string $version,
		private readonly string $digest
	) {}

	/**
	 * Returns version and configuration of the extension; empty when it is not loaded.
	 *
	 * @return array<string, mixed>
	 */
	public static function info(): array {
		return class_exists( Extension::class, false ) ? Extension::info() : [];
	}

	/** Returns the failure that prevents all runs, or null when the extension fits. */
	public function failure(): ?Failure {
		if ( ! class_exists( Extension::class, false ) ) {
			return Failure::because(
				ErrorCode::ExtensionMissing,
				__( 'The PHP extension wp_codebox is not loaded in this PHP, so no sandbox can be started.', 'codebox' ),
				[
					/* translators: 1: PHP version, 2: directory. */
					Sentence::of( __( 'Copy wp_codebox.so built for PHP %1$s to %2$s.', 'codebox' ), PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION, (string) ini_get( 'extension_dir' ) ),
					/* translators: 1: file, 2: name of a PHP SAPI, as `fpm-fcgi`. */
					Sentence::of( __( 'Put the line "extension=wp_codebox.so" into %1$s and restart PHP (this is the %2$s SAPI).', 'codebox' ), $this->ini_file(), PHP_SAPI ),
				]
			);
		}
		$version = Extension::version();
		if ( $version !== $this->version ) {
			/* translators: 1: version of the extension, 2: version of the plugin. */
			return $this->stale( Sentence::of( __( 'it is version %1$s, the plugin is version %2$s', 'codebox' ), $version, $this->version ) );
		}
		if ( ! hash_equals( $this->digest, Extension::contractDigest() ) ) {
			return $this->stale( __( 'its JSON schemas differ from those of the plugin', 'codebox' ) );
		}
		return $this->served();
	}

	/**
	 * Returns the failure when a web server can serve the state directory, which holds the bundle signing
	 * key; else null.
	 */
	private function served(): ?Failure {
		$state  = (string) ( Extension::info()['state_dir'] ?? '' );
		$served = ServedDirectories::holding( $state );
		return null === $served ? null : Failure::because(
			ErrorCode::StateDirInvalid,
			/* translators: 1: directory, 2: directory that holds it. */
			Sentence::of( __( 'The state directory %1$s is in %2$s, whose files a web server serves. The state directory holds the key that signs bundles, and the data of runs.', 'codebox' ), $state, $served ),
			[
				__( 'Move the state directory to a place that no web server serves, for example below /var/lib/wp-codebox, and set wp_codebox.state_dir in php.ini to it.', 'codebox' ),
				__( 'Delete keys/host.ed25519 in the state directory, so that a new key is created: a key that a web server could serve is not secret.', 'codebox' ),
			]
		);
	}

	/**
	 * Throws unless the extension fits.
	 *
	 * @throws Failure `wp_codebox_extension_missing`, `wp_codebox_extension_stale` or `wp_codebox_state_dir_invalid`.
	 */
	public function check(): void {
		$failure = $this->failure();
		if ( null !== $failure ) {
			throw $failure;
		}
	}

	/**
	 * Builds the failure for an extension that does not fit.
	 *
	 * @param string $reason Difference between plugin and extension.
	 */
	private function stale( string $reason ): Failure {
		return Failure::because(
			ErrorCode::ExtensionStale,
			/* translators: %s: what differs. */
			Sentence::of( __( 'The PHP extension wp_codebox does not fit this plugin: %s.', 'codebox' ), $reason ),
			[
				/* translators: 1: version of the plugin, 2: PHP version. */
				Sentence::of( __( 'Install the wp_codebox.so of release %1$s for PHP %2$s and restart PHP.', 'codebox' ), $this->version, PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION ),
				__( 'Or install the plugin of the same release as the extension.', 'codebox' ),
			]
		);
	}

	/** Returns the ini file that an administrator edits to load the extension. */
	private function ini_file(): string {
		$scan = PHP_CONFIG_FILE_SCAN_DIR;
		if ( '' !== $scan ) {
			return explode( PATH_SEPARATOR, $scan )[0] . '/30-wp_codebox.ini';
		}
		$loaded = php_ini_loaded_file();
		return is_string( $loaded ) ? $loaded : PHP_CONFIG_FILE_PATH . '/php.ini';
	}
}
