<?php
/**
 * Page of a browser sandbox in wp-admin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use Throwable;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\SingleFilePlugins;
use WPCodebox\PlainText;
use WPCodebox\Sentence;

use const WPCodebox\VERSION;

defined( 'ABSPATH' ) || exit;

/**
 * Opens a session for one plugin, theme or bundle through the public abilities and starts the workbench on it. If the URL
 * contains none of these, the page lists what can be opened. If no session can be opened, the page shows the reason.
 */
final class BrowserPage {

	public const SLUG  = 'wp-codebox-browser';
	public const NONCE = 'wp-codebox-browser';

	/** Abilities that the page uses. */
	private const CREATE  = 'wp-codebox/create-browser-playground-session';
	private const HYDRATE = 'wp-codebox/hydrate-browser-blueprint-ref';
	private const KEEP    = 'wp-codebox/persist-browser-artifact';

	/** Failure that the page shows instead of a workbench. */
	private ?Failure $failure = null;

	/** Whether a workbench is on the page. */
	private bool $opened = false;

	/**
	 * Creates the page with its dependencies.
	 *
	 * @param EngineFiles   $engine       Files of the engine.
	 * @param Capabilities  $capabilities Permission checks of the user.
	 * @param InstalledCode $code         Lookup of installed plugins and themes.
	 */
	public function __construct(
		private readonly EngineFiles $engine,
		private readonly Capabilities $capabilities,
		private readonly InstalledCode $code
	) {}

	/** Registers the hooks. */
	public function register(): void {
		add_action( 'admin_menu', [ $this, 'add' ] );
	}

	/** Adds the page, which no menu shows. */
	public function add(): void {
		if ( ! $this->capabilities->allows( Capabilities::RUN ) ) {
			return;
		}
		// The empty parent hides the page from the menu.
		$hook = add_submenu_page( '', __( 'Browser sandbox', 'codebox' ), __( 'Browser sandbox', 'codebox' ), Capabilities::RUN, self::SLUG, [ $this, 'render' ] );
		if ( is_string( $hook ) ) {
			add_action( 'load-' . $hook, [ $this, 'load' ] );
		}
	}

	/** Opens the session before anything is printed. */
	public function load(): void {
		// WordPress finds no title for a page without a parent.
		$GLOBALS['title'] = __( 'Browser sandbox', 'codebox' );
		// phpcs:disable WordPress.Security.NonceVerification, WordPress.Security.ValidatedSanitizedInput -- checked below; slugs are looked up, never used as paths.
		$kind = isset( $_GET['kind'] ) && is_string( $_GET['kind'] ) ? wp_unslash( $_GET['kind'] ) : '';
		$slug = isset( $_GET['slug'] ) && is_string( $_GET['slug'] ) ? wp_unslash( $_GET['slug'] ) : '';
		// phpcs:enable
		if ( '' === $kind && '' === $slug ) {
			return;
		}
		check_admin_referer( self::NONCE );
		try {
			$page = $this->open( $kind, $slug );
		} catch ( Throwable $thrown ) {
			$this->failure = Failure::from( $thrown );
			return;
		}
		$this->opened = true;
		add_action( 'admin_enqueue_scripts', fn() => $this->enqueue( $page ) );
	}

	/** Prints the failure, if any, then the element of the workbench or the list of what can be opened. */
	public function render(): void {
		printf( '<div class="wrap wp-codebox-browser"><h1>%s</h1>', esc_html__( 'Browser sandbox', 'codebox' ) );
		if ( null !== $this->failure ) {
			$this->notice( $this->failure );
		}
		if ( $this->opened ) {
			printf(
				'<div id="wp-codebox-browser"></div><noscript><div class="notice notice-error"><p>%s</p></div></noscript>',
				esc_html__( 'A browser sandbox needs JavaScript.', 'codebox' )
			);
		} else {
			$this->choices();
		}
		echo '</div>';
	}

	/**
	 * Opens a session and returns the configuration of the workbench.
	 *
	 * @param string $kind `plugin`, `theme` or `bundle`.
	 * @param string $slug Slug, or artifact id.
	 * @return array<string, mixed> `window.wpCodeboxBrowserPage`.
	 * @throws Failure When no session can be opened.
	 */
	private function open( string $kind, string $slug ): array {
		self::assert_secure();
		// The name of the subject is only for people; the abilities check kind and slug.
		$goal    = Sentence::of( 'bundle' === $kind ? /* translators: %s: id of a bundle. */ __( 'Look at the bundle %s', 'codebox' ) : /* translators: %s: name of a plugin or theme. */ __( 'Work on %s', 'codebox' ), $slug );
		$subject = $kind . ':' . $slug;
		// phpcs:ignore WordPress.Security.NonceVerification -- checked by load().
		$session = isset( $_GET['new'] ) ? null : $this->resumed( $subject );
		if ( null === $session ) {
			$session = $this->call(
				self::CREATE,
				[
					'goal'  => $goal,
					'roots' => [
						[
							'kind' => $kind,
							'slug' => $slug,
						],
					],
				]
			);
			RecentSessions::keep( $subject, $session );
		}
		return $this->configuration( $session );
	}

	/**
	 * Returns the configuration of the workbench.
	 *
	 * @param array<string, mixed> $session Answer of the ability that created the session.
	 * @return array<string, mixed>
	 */
	private function configuration( array $session ): array {
		$boot   = (array) ( $session['preview_boot'] ?? [] );
		$route  = static fn( string $ability ): array => [
			'url'   => rest_url( 'wp-abilities/v1/abilities/' . $ability . '/run' ),
			'nonce' => wp_create_nonce( 'wp_rest' ),
		];
		$record = ( new SessionStore() )->get( (string) ( $session['session_id'] ?? '' ) );
		$keep   = wp_has_ability( self::KEEP ) && true === wp_get_ability( self::KEEP )->check_permissions( [] );
		return [
			'client_module_url' => (string) ( $boot['client_module_url'] ?? '' ),
			'remote_url'        => (string) ( $boot['remote_url'] ?? '' ),
			'scope'             => (string) ( $boot['scope'] ?? '' ),
			'session'           => $session,
			'blueprint_ref'     => $session['blueprint_ref'] ?? $boot['blueprint_ref'] ?? '',
			'hydrate'           => $route( self::HYDRATE ),
			'roots'             => array_map(
				static fn( array $root ): array => [
					'target' => (string) $root['target'],
					'path'   => SeedArchives::CONTENT . $root['target'],
					'label'  => basename( (string) $root['target'] ),
				],
				$record->baseline
			),
			'isolation'         => $record->isolation,
			'can_keep'          => $keep,
			'review_url'        => admin_url( 'tools.php?page=wp-codebox#/bundles/%s' ),
		] + ( $keep ? [ 'keep' => $route( self::KEEP ) ] : [] );
	}

	/**
	 * Enqueues the workbench with its configuration.
	 *
	 * @param array<string, mixed> $page Configuration.
	 */
	private function enqueue( array $page ): void {
		wp_enqueue_style( self::SLUG, $this->engine->url( 'workbench.css' ), [], VERSION );
		// A module cannot depend on classic scripts, so a classic handle without source loads wp.i18n and has the configuration.
		wp_register_script( self::SLUG . '-page', false, [ 'wp-i18n' ], VERSION, [ 'in_footer' => false ] );
		wp_add_inline_script( self::SLUG . '-page', 'window.wpCodeboxBrowserPage = ' . wp_json_encode( $page, JSON_HEX_TAG | JSON_HEX_AMP | JSON_UNESCAPED_SLASHES ) . ';' );
		wp_enqueue_script( self::SLUG . '-page' );
		wp_enqueue_script_module( self::SLUG, $this->engine->url( 'workbench.js' ), [], VERSION );
	}

	/**
	 * Calls an ability as the current user.
	 *
	 * @param string               $name  Name of the ability.
	 * @param array<string, mixed> $input Its input.
	 * @return array<string, mixed>
	 * @throws Failure With the error of the ability.
	 */
	private function call( string $name, array $input ): array {
		$ability = wp_has_ability( $name ) ? wp_get_ability( $name ) : null;
		if ( null === $ability ) {
			/* translators: %s: name of an ability. */
			throw Failure::because( ErrorCode::ApiAbilityNotSupported, Sentence::of( __( 'The ability %s is not registered on this site; update Codebox, and check that no other plugin removes the ability.', 'codebox' ), $name ) );
		}
		$answer = $ability->execute( $input );
		if ( is_wp_error( $answer ) ) {
			throw Failure::from_wp_error( $answer );
		}
		$answer = (array) $answer;
		if ( false === ( $answer['success'] ?? true ) || 'blocked' === ( $answer['status'] ?? '' ) ) {
			$error = (array) ( $answer['error'] ?? [] );
			throw Failure::because( ErrorCode::BrowserAssetsMissing, (string) ( $error['message'] ?? __( 'The browser sandbox cannot be opened.', 'codebox' ) ), array_values( array_filter( (array) ( $error['hints'] ?? [] ), 'is_string' ) ) );
		}
		return $answer;
	}

	/**
	 * Returns the session that a reload continues; null when there is none or its blueprint is not stored any more.
	 *
	 * @param string $subject Kind and slug.
	 * @return array<string, mixed>|null
	 */
	private function resumed( string $subject ): ?array {
		$session = RecentSessions::get( $subject );
		$ref     = $session['blueprint_ref'] ?? '';
		try {
			null !== $session && $this->call( self::HYDRATE, [ 'ref' => is_array( $ref ) ? (string) ( $ref['ref'] ?? '' ) : (string) $ref ] );
			return $session;
		} catch ( Throwable ) {
			return null;
		}
	}

	/**
	 * Fails unless browsers allow service workers on this page.
	 *
	 * @throws Failure `wp_codebox_browser_host_invalid`.
	 */
	private static function assert_secure(): void {
		if ( ! is_ssl() && ! BrowserHost::is_loopback( BrowserHost::host_of( admin_url() ) ) ) {
			throw Failure::because(
				ErrorCode::BrowserHostInvalid,
				__( 'A browser sandbox needs https: browsers run service workers only on encrypted pages.', 'codebox' ),
				[ __( 'Open wp-admin with https.', 'codebox' ) ]
			);
		}
	}

	/**
	 * Prints a failure.
	 *
	 * @param Failure $failure Failure.
	 */
	private function notice( Failure $failure ): void {
		printf( '<div class="notice notice-error" role="alert"><p>%s</p>', esc_html( PlainText::of( $failure->getMessage() ) ) );
		foreach ( $failure->hints as $hint ) {
			printf( '<p>%s</p>', esc_html( PlainText::of( $hint ) ) );
		}
		printf( '<p><code>%s</code></p></div>', esc_html( $failure->error_code ) );
	}

	/** Prints the plugins and themes that can be opened. */
	private function choices(): void {
		printf( '<p>%s</p>', esc_html__( 'A browser sandbox is a WordPress that runs in this browser with a copy of the code. Nothing that happens in it changes this site.', 'codebox' ) );
		foreach ( [
			'plugin' => __( 'Plugins', 'codebox' ),
			'theme'  => __( 'Themes', 'codebox' ),
		] as $kind => $title ) {
			printf( '<h2>%s</h2><ul class="ul-disc">', esc_html( $title ) );
			foreach ( array_keys( $this->code->installed( $kind ) + ( 'plugin' === $kind ? SingleFilePlugins::all() : [] ) ) as $slug ) {
				printf( '<li><a href="%s">%s</a></li>', esc_url( SandboxLinks::address( $kind, (string) $slug ) ), esc_html( (string) $slug ) );
			}
			echo '</ul>';
		}
	}
}
