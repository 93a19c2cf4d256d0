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
 * On a single site the page is below Settings and WordPress's `options.php` saves it. On a network it is
 * below the network's Settings and save() saves it. Both paths use SettingRules. The page works without the
 * extension.
 */
final class SettingsPage {

	/**
	 * Differs from the slug of the page below Tools: with equal slugs WordPress would confuse the pages and
	 * print no notices here.
	 */
	public const SLUG = 'wp-codebox-settings';

	private const ACTION = 'wp-codebox-settings';

	/**
	 * Creates the page with its dependencies.
	 *
	 * @param SettingsForm $form  Fields of the page.
	 * @param SettingRules $rules Rules for each setting.
	 * @param BrowserFields|null $browser Part about browser sandboxes.
	 */
	public function __construct(
		private readonly SettingsForm $form,
		private readonly SettingRules $rules,
		private readonly ?BrowserFields $browser = null
	) {}

	/** Registers the hooks. */
	public function register(): void {
		if ( is_multisite() ) {
			add_action( 'network_admin_menu', [ $this, 'add_page' ] );
			add_action( 'network_admin_edit_' . self::ACTION, [ $this, 'save' ] );
		} else {
			add_action( 'admin_menu', [ $this, 'add_page' ] );
			// WordPress's options.php checks this capability instead of manage_options.
			add_filter( 'option_page_capability_' . SettingRules::GROUP, [ self::class, 'capability' ] );
		}
	}

	/** Returns the capability needed to change the settings. */
	public static function capability(): string {
		return Capabilities::SETTINGS;
	}

	/** Returns the address of the settings page. */
	public static function address(): string {
		return is_multisite() ? network_admin_url( 'settings.php?page=' . self::SLUG ) : admin_url( 'options-general.php?page=' . self::SLUG );
	}

	/** Adds the settings page to the admin menu. */
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

	/** Registers fields and help, only when this page is requested. */
	public function prepare(): void {
		$this->form->add_fields();
		( new SettingsHelp() )->add( get_current_screen() );
	}

	/** Prints the settings page. */
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
		echo '</form>';
		$this->browser?->render();
		echo '</div>';
	}

	/** Saves the settings of a network; WordPress's `options.php` saves only options of a site. */
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
		wp_safe_redirect( add_query_arg( 'settings-updated', 'true', self::address() ) );
		exit;
	}
}
