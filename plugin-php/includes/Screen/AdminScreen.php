<?php
/**
 * Tools → Codebox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Screen;

use WPCodebox\Capabilities;

use const WPCodebox\VERSION;

defined( 'ABSPATH' ) || exit;

/**
 * Optional reference user interface: this directory, `assets/screen/` and one line in the class Plugin
 * can be removed together. The page is empty; scripts fill it through the public abilities over REST as the
 * logged-in user. This class reads no data and makes no decision, and no other class depends on it.
 */
final class AdminScreen {

	public const SLUG = 'wp-codebox';

	/** Scripts in `assets/screen/` with their dependencies. */
	private const SCRIPTS = [
		'text'      => [],
		'dom'       => [ 'text' ],
		'api'       => [ 'dom' ],
		'output'    => [ 'dom' ],
		'diff'      => [ 'dom' ],
		'runs'      => [ 'api', 'output' ],
		'task'      => [ 'api' ],
		'decisions' => [ 'api' ],
		'apply'     => [ 'decisions' ],
		'history'   => [ 'api' ],
		'bundles'   => [ 'diff', 'apply', 'history' ],
		'screen'    => [ 'runs', 'task', 'bundles' ],
	];

	/**
	 * Creates the screen with its dependencies.
	 *
	 * @param string       $file         Main file of the plugin.
	 * @param Capabilities $capabilities Permission checks of the user.
	 * @param string       $settings     Address of the settings page.
	 * @param callable(string, string): string|null $sandbox Returns the address that opens a bundle in a browser sandbox; null
	 *   when the plugin has none.
	 */
	public function __construct(
		private readonly string $file,
		private readonly Capabilities $capabilities,
		private readonly string $settings,
		private readonly mixed $sandbox = null
	) {}

	/** Registers the hooks. */
	public function register(): void {
		add_action( 'admin_menu', [ $this, 'add' ] );
	}

	/** Adds the page for users who may run or review. */
	public function add(): void {
		/**
		 * Filters whether the admin screen exists. Abilities, REST routes and commands are not affected.
		 *
		 * @param bool $enabled True.
		 */
		if ( true !== apply_filters( 'wp_codebox_screen_enabled', true ) || ! function_exists( 'wp_register_ability' ) ) {
			return;
		}
		$capability = null;
		foreach ( [ Capabilities::REVIEW, Capabilities::RUN ] as $candidate ) {
			$capability ??= $this->capabilities->allows( $candidate ) ? $candidate : null;
		}
		if ( null === $capability ) {
			return;
		}
		$hook = add_management_page( __( 'Codebox', 'codebox' ), __( 'Codebox', 'codebox' ), $capability, self::SLUG, [ $this, 'render' ] );
		if ( is_string( $hook ) ) {
			add_action( 'load-' . $hook, [ $this, 'load' ] );
		}
	}

	/** Enqueues scripts and style on this page only, and adds its help text. */
	public function load(): void {
		add_action( 'admin_enqueue_scripts', [ $this, 'enqueue' ] );
		get_current_screen()?->add_help_tab(
			[
				'id'      => 'wp-codebox-screen',
				'title'   => __( 'From task to change', 'codebox' ),
				'content' => '<p>' . esc_html__( 'A task runs in a sandbox beside this site and changes nothing here. What it changed comes back as a bundle. Read the diff of each file, choose the files you approve, and apply only those; or reject the bundle, ask for changes, or discard it.', 'codebox' ) . '</p>',
			]
		);
	}

	/** Enqueues scripts and style. The scripts need no build step; WordPress's own scripts add REST nonce and translations. */
	public function enqueue(): void {
		$base = plugins_url( 'assets/screen/', $this->file );
		foreach ( self::SCRIPTS as $name => $needs ) {
			$handle = 'wp-codebox-screen-' . $name;
			$needs  = array_map( static fn( string $other ): string => 'wp-codebox-screen-' . $other, $needs );
			wp_register_script( $handle, $base . $name . '.js', array_merge( [ 'wp-api-fetch', 'wp-i18n', 'wp-url' ], $needs ), VERSION, [ 'in_footer' => true ] );
			wp_set_script_translations( $handle, 'codebox', plugin_dir_path( $this->file ) . 'languages' );
		}
		wp_enqueue_script( 'wp-codebox-screen-screen' );
		wp_enqueue_style( 'wp-codebox-screen', $base . 'screen.css', [], VERSION );
	}

	/**
	 * Prints the empty page. The user's capabilities decide which buttons it shows; the abilities check
	 * permissions again.
	 */
	public function render(): void {
		$may = array_filter(
			[
				'run'    => $this->capabilities->allows( Capabilities::RUN ),
				'review' => $this->capabilities->allows( Capabilities::REVIEW ),
				'apply'  => $this->capabilities->allows( Capabilities::APPLY ),
			]
		);
		printf(
			'<div class="wrap wp-codebox-screen"><h1>%s</h1><div id="wp-codebox-screen" data-may="%s" data-settings="%s"%s></div><noscript><div class="notice notice-error"><p>%s</p></div></noscript></div>',
			esc_html__( 'Codebox', 'codebox' ),
			esc_attr( implode( ' ', array_keys( $may ) ) ),
			esc_url( current_user_can( Capabilities::SETTINGS ) ? $this->settings : '' ),
			// The script puts the id of the bundle into the parameter `slug`.
			is_callable( $this->sandbox ) && isset( $may['run'] ) ? ' data-sandbox="' . esc_url( ( $this->sandbox )( 'bundle', '' ) ) . '"' : '',
			esc_html__( 'This screen needs JavaScript. The commands of wp codebox do the same in a terminal.', 'codebox' )
		);
	}
}
