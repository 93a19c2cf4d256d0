<?php
/**
 * Notices in the admin screens.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Capabilities;
use WPCodebox\ExtensionGate;
use WPCodebox\PlainText;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Tells administrators why the plugin cannot run, or only in part, and how to fix it. Shown where plugins are managed.
 */
final class Notices {

	/** Screens that show the notices. */
	private const SCREENS = [ 'dashboard', 'plugins', 'plugins-network', 'dashboard-network', 'site-health', 'update-core', 'tools_page_wp-codebox', 'settings_page_wp-codebox-settings', 'settings_page_wp-codebox-settings-network' ];

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param ExtensionGate $gate     Check that the PHP extension is loaded and its version fits.
	 * @param Settings      $settings Settings that turn direct apply on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Settings $settings
	) {}

	/** Registers the hooks. */
	public function register(): void {
		add_action( 'admin_notices', [ $this, 'render' ] );
		add_action( 'network_admin_notices', [ $this, 'render' ] );
	}

	/** Prints the notices. */
	public function render(): void {
		$screen = get_current_screen();
		// phpcs:ignore WordPress.WP.Capabilities -- mapped in Capabilities.
		if ( ! current_user_can( Capabilities::RUN ) || null === $screen || ! in_array( $screen->id, self::SCREENS, true ) ) {
			return;
		}
		$failure = $this->gate->failure();
		if ( null !== $failure ) {
			$this->notice( 'error', __( 'Codebox cannot run.', 'codebox' ), $failure->getMessage(), $failure->hints );
		}
		foreach ( RecoveryNotes::all( $this->settings ) as [ $sentence, $fixes ] ) {
			$this->notice( 'warning', __( 'The recovery link of direct apply may not work.', 'codebox' ), $sentence, $fixes );
		}
		foreach ( RecoveryNotes::changes() as [ $title, $sentence, $fixes ] ) {
			$this->notice( 'error', $title, $sentence, $fixes );
		}
		if ( ! function_exists( 'wp_register_ability' ) ) {
			$this->notice(
				'warning',
				__( 'Codebox is limited.', 'codebox' ),
				__( 'This WordPress has no Abilities API, so only the WP-CLI commands work.', 'codebox' ),
				[ __( 'Update to WordPress 6.9 or newer.', 'codebox' ) ]
			);
		}
	}

	/**
	 * Prints one notice.
	 *
	 * @param string       $kind     `error` or `warning`.
	 * @param string       $title    Title of the notice.
	 * @param string       $sentence Error message.
	 * @param list<string> $fixes    Suggested fixes, one sentence each.
	 */
	private function notice( string $kind, string $title, string $sentence, array $fixes ): void {
		printf( '<div class="notice notice-%s"><p><strong>%s</strong> %s</p>', esc_attr( $kind ), esc_html( $title ), esc_html( PlainText::of( $sentence ) ) );
		if ( [] !== $fixes ) {
			echo '<ul class="ul-disc">';
			foreach ( $fixes as $fix ) {
				printf( '<li>%s</li>', esc_html( PlainText::of( $fix ) ) );
			}
			echo '</ul>';
		}
		echo '</div>';
	}
}
