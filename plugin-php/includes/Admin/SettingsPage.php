<?php
/**
 * Settings → Codebox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Capabilities;
use WPCodebox\Host\SettingRules;

defined( 'ABSPATH' ) || exit;

/**
 * One page: on a single site below Settings, saved by core's `options.php`; on a network below the
 * network's Settings, saved here. Both pass through SettingRules. It works without the extension.
 */
final class SettingsPage {

	/** Not the slug of the screen below Tools: WordPress would take this page for that one and print no notices. */
	public const SLUG = 'wp-codebox-settings';

	private const ACTION = 'wp-codebox-settings';

	/**
	 * Wires the page.
	 *
	 * @param SettingsForm $form  Fields.
	 * @param SettingRules $rules Which settings there are.
	 */
	public function __construct(
		private readonly SettingsForm $form,
		private readonly SettingRules $rules
	) {}

	/** Registers the hooks. */
	public function register(): void {
		if ( is_multisite() ) {
			add_action( 'network_admin_menu', [ $this, 'add_page' ] );
			add_action( 'network_admin_edit_' . self::ACTION, [ $this, 'save' ] );
		} else {
			add_action( 'admin_menu', [ $this, 'add_page' ] );
			// What core's options.php asks for instead of manage_options.
			add_filter( 'option_page_capability_' . SettingRules::GROUP, [ self::class, 'capability' ] );
		}
	}

	/** Who may change the settings. */
	public static function capability(): string {
		return Capabilities::SETTINGS;
	}

	/** Adds the page to the menu. */
	public function add_page(): void {
		$hook = add_submenu_page(
			is_multisite() ? 'settings.php' : 'options-general.php',
			__( 'Codebox', 'codebox' ),
			__( 'Codebox', 'codebox' ),
			self::capability(),
			self::SLUG,
			[ $this, 'render' ]
		);
		if ( false !== $hook ) {
			add_action( 'load-' . $hook, [ $this, 'prepare' ] );
		}
	}

	/** Fields and help, once it is known that this page is asked for. */
	public function prepare(): void {
		$this->form->add_fields();
		( new SettingsHelp() )->add( get_current_screen() );
	}

	/** Prints the page. */
	public function render(): void {
		echo '<div class="wrap"><h1>' . esc_html__( 'Codebox', 'codebox' ) . '</h1>';
		if ( is_multisite() ) {
			settings_errors();
			printf( '<form method="post" action="%s">', esc_url( network_admin_url( 'edit.php?action=' . self::ACTION ) ) );
			wp_nonce_field( self::ACTION );
		} else {
			printf( '<form method="post" action="%s">', esc_url( admin_url( 'options.php' ) ) );
			settings_fields( SettingRules::GROUP );
		}
		do_settings_sections( self::SLUG );
		submit_button();
		echo '</form></div>';
	}

	/** Saves the settings of a network; core's `options.php` knows only those of a site. */
	public function save(): void {
		check_admin_referer( self::ACTION );
		if ( ! current_user_can( self::capability() ) ) {
			wp_die( esc_html__( 'You are not allowed to change the settings of this network.', 'codebox' ), '', [ 'response' => 403 ] );
		}
		require_once ABSPATH . 'wp-admin/includes/template.php';
		foreach ( $this->rules->options() as $option ) {
			// phpcs:ignore WordPress.Security.ValidatedSanitizedInput -- SettingRules judges it.
			update_site_option( $option, wp_unslash( $_POST[ $option ] ?? null ) );
		}
		if ( [] === get_settings_errors() ) {
			add_settings_error( 'general', 'settings_updated', __( 'Settings saved.', 'codebox' ), 'success' );
		}
		set_transient( 'settings_errors', get_settings_errors(), 30 );
		wp_safe_redirect( add_query_arg( 'settings-updated', 'true', network_admin_url( 'settings.php?page=' . self::SLUG ) ) );
		exit;
	}
}
