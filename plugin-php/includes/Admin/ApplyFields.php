<?php
/**
 * Fields of the settings page about applying changes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/** Prints the switches for direct apply and for four eyes, and the pages that must work after a change. */
final class ApplyFields {

	private const SECTION = 'apply';

	/**
	 * Creates the fields with their dependencies.
	 *
	 * @param Settings $settings Effective settings.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Declares section and fields.
	 *
	 * @param string $page Slug of the settings page.
	 */
	public function add( string $page ): void {
		add_settings_section( self::SECTION, __( 'Apply', 'codebox' ), [ $this, 'about' ], $page );
		add_settings_field( Settings::DIRECT_APPLY, __( 'Direct apply', 'codebox' ), [ $this, 'direct_apply' ], $page, self::SECTION );
		add_settings_field( Settings::FOUR_EYES, __( 'Four eyes', 'codebox' ), [ $this, 'four_eyes' ], $page, self::SECTION );
		add_settings_field( Settings::FORGET_CHANGES, __( 'When uninstalled', 'codebox' ), [ $this, 'forget_changes' ], $page, self::SECTION );
		add_settings_field( Settings::HEALTH_URLS, __( 'Pages that must work', 'codebox' ), [ $this, 'health_urls' ], $page, self::SECTION, [ 'label_for' => Settings::HEALTH_URLS ] );
	}

	/** Prints the text above the fields: who writes approved changes. */
	public function about(): void {
		printf( '<p class="description">%s</p>', esc_html__( 'Approved changes are written by another plugin that answers the filter wp_codebox_apply_approved_artifact. With direct apply, Codebox writes them itself when no other plugin does.', 'codebox' ) );
	}

	/** Prints the switch for direct apply. */
	public function direct_apply(): void {
		$this->flag( Settings::DIRECT_APPLY, $this->settings->direct_apply(), __( 'Write approved files into this site. All of them or none are written; when the site works worse afterwards, they are taken back at once.', 'codebox' ) );
	}

	/** Prints the switch for four eyes. */
	public function four_eyes(): void {
		$this->flag( Settings::FOUR_EYES, $this->settings->four_eyes(), __( 'Whoever asked for a change may not approve it.', 'codebox' ) );
	}

	/** Prints the question about the old files. */
	public function forget_changes(): void {
		$this->flag( Settings::FORGET_CHANGES, $this->settings->forget_changes(), __( 'Also delete the old files of applied changes when Codebox is uninstalled. They can then no longer be taken back.', 'codebox' ) );
	}

	/** Prints the field of the operator's own pages. */
	public function health_urls(): void {
		printf(
			'<textarea id="%1$s" name="%1$s" rows="3" class="large-text code" spellcheck="false" aria-describedby="%1$s-about">%2$s</textarea><p class="description" id="%1$s-about">%3$s</p>',
			esc_attr( Settings::HEALTH_URLS ),
			esc_textarea( implode( "\n", $this->settings->health_urls() ) ),
			esc_html__( 'URLs of this site, one per line. Front page, login, dashboard, REST index and admin-ajax are requested in any case.', 'codebox' )
		);
	}

	/**
	 * Prints a switch.
	 *
	 * @param string $option Name of the option.
	 * @param bool   $on     Whether it is on.
	 * @param string $label  Text beside it.
	 */
	private function flag( string $option, bool $on, string $label ): void {
		printf( '<label><input type="checkbox" name="%s" value="1"%s> %s</label>', esc_attr( $option ), checked( $on, true, false ), esc_html( $label ) );
	}
}
