<?php
/**
 * Fields of the settings page about applying changes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\GitBranch\Repository;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/** Prints the fields of the git branch, the switches for direct apply and for four eyes, and the pages that must work after a change. */
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
		foreach ( self::git() as $field => [ $label, $about ] ) {
			$id = Settings::GIT_BRANCH . '-' . $field;
			add_settings_field( $id, $label, [ $this, 'git_branch' ], $page, self::SECTION, [ 'label_for' => $id, 'field' => $field, 'about' => $about ] );
		}
		add_settings_field( Settings::FOUR_EYES, __( 'Four eyes', 'codebox' ), [ $this, 'four_eyes' ], $page, self::SECTION );
		add_settings_field( Settings::FORGET_CHANGES, __( 'When uninstalled', 'codebox' ), [ $this, 'forget_changes' ], $page, self::SECTION );
		add_settings_field( Settings::HEALTH_URLS, __( 'Pages that must work', 'codebox' ), [ $this, 'health_urls' ], $page, self::SECTION, [ 'label_for' => Settings::HEALTH_URLS ] );
	}

	/** Prints the text above the fields: who writes approved changes. */
	public function about(): void {
		printf( '<p class="description">%s</p>', esc_html__( 'A plugin that answers the filter wp_codebox_apply_approved_artifact writes approved changes. Without such a plugin Codebox does it: with a git repository it commits the changes on a branch, else with direct apply it writes them into this site.', 'codebox' ) );
	}

	/** Prints the switch for direct apply. */
	public function direct_apply(): void {
		$this->flag( Settings::DIRECT_APPLY, $this->settings->direct_apply(), __( 'Write approved files into this site, all of them or none. If a page that worked before fails afterwards, the old files are restored at once.', 'codebox' ) );
		printf( '<p class="description">%s</p>', esc_html__( 'After each change the approver gets a mail with a link that takes the change back, also when the dashboard does not work.', 'codebox' ) );
	}

	/**
	 * Returns label and description of each field of the git branch.
	 *
	 * @return array<string, array{string, string}>
	 */
	private static function git(): array {
		return [
			'repository' => [ __( 'Git repository', 'codebox' ), __( 'Directory of this host, inside a directory that wp_codebox.mount_roots in php.ini lists. Empty: no commits. The constant WP_CODEBOX_GIT_REPOSITORY in wp-config.php takes precedence.', 'codebox' ) ],
			'directory'  => [ __( 'Directory of the code in the repository', 'codebox' ), __( 'For example wp-content/{path}: {path} stands for plugins/name or themes/name, {name} for the name alone. A single dot means the top directory of the repository. Empty: the path at which this site has the code, which must then be in the work tree.', 'codebox' ) ],
			/* translators: %s: default. */
			'branch'     => [ __( 'Branch', 'codebox' ), sprintf( __( 'Name of the branch; {run} is the id of the run. Default: %s. Nothing is pushed.', 'codebox' ), Repository::BRANCH ) ],
			/* translators: %s: default. */
			'base'       => [ __( 'Base branch', 'codebox' ), sprintf( __( 'Where a new branch begins. Default: %s.', 'codebox' ), Repository::BASE ) ],
			'author'     => [ __( 'Author', 'codebox' ), __( 'Name <mail address>. Default: the user who applies.', 'codebox' ) ],
			'committer'  => [ __( 'Committer', 'codebox' ), __( 'Name <mail address>. Default: this site.', 'codebox' ) ],
		];
	}

	/**
	 * Prints one field of the git branch.
	 *
	 * @param array<string, string> $field Field arguments `field`, `label_for` and `about`.
	 */
	public function git_branch( array $field ): void {
		printf(
			'<input type="text" id="%1$s" name="%2$s" value="%3$s" class="regular-text code" spellcheck="false" aria-describedby="%1$s-about"><p class="description" id="%1$s-about">%4$s</p>',
			esc_attr( $field['label_for'] ),
			esc_attr( Settings::GIT_BRANCH . '[' . $field['field'] . ']' ),
			esc_attr( $this->settings->git_branch()[ $field['field'] ] ),
			esc_html( $field['about'] )
		);
	}

	/** Prints the switch for four eyes. */
	public function four_eyes(): void {
		$this->flag( Settings::FOUR_EYES, $this->settings->four_eyes(), __( 'The user who asked for a change may not approve it.', 'codebox' ) );
	}

	/** Prints the switch that decides whether uninstalling also deletes the old contents of changed files, which roll backs need. */
	public function forget_changes(): void {
		$this->flag( Settings::FORGET_CHANGES, (bool) get_site_option( Settings::FORGET_CHANGES, false ), __( 'Also delete the old files of applied changes when Codebox is uninstalled. The changes can then no longer be taken back.', 'codebox' ) );
	}

	/** Prints the field for further pages, chosen by the administrator, that must work after a change. */
	public function health_urls(): void {
		printf(
			'<textarea id="%1$s" name="%1$s" rows="3" class="large-text code" spellcheck="false" aria-describedby="%1$s-about">%2$s</textarea><p class="description" id="%1$s-about">%3$s</p>',
			esc_attr( Settings::HEALTH_URLS ),
			esc_textarea( implode( "\n", $this->settings->health_urls() ) ),
			esc_html__( 'URLs of this site, one per line. Front page, login, REST index, admin-ajax and WP-Cron are requested in any case, the dashboard only when a logged-in user applies.', 'codebox' )
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
