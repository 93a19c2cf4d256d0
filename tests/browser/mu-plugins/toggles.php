<?php
/**
 * Lets the suite change the behavior of the site between two requests.
 */

declare(strict_types=1);

// The script of the login page moves the focus 200 ms after loading, also while a test fills the other field.
add_filter( 'enable_login_autofocus', '__return_false' );

$codebox_toggles = (array) json_decode( (string) @file_get_contents( getenv( 'TMPDIR' ) . '/toggles.json' ), true );
if ( isset( $codebox_toggles['screen'] ) ) {
	add_filter( 'wp_codebox_screen_enabled', static fn(): mixed => $codebox_toggles['screen'] );
}
if ( isset( $codebox_toggles['narrow'] ) ) {
	add_filter( 'wp_codebox_can_run_agent_task', static fn( bool $allowed, string $capability ): bool => $allowed && ! in_array( $capability, $codebox_toggles['narrow'], true ), 10, 2 );
}
if ( isset( $codebox_toggles['hide'] ) ) {
	add_action(
		'wp_abilities_api_init',
		static function () use ( $codebox_toggles ): void {
			foreach ( $codebox_toggles['hide'] as $name ) {
				wp_unregister_ability( $name );
			}
		},
		99
	);
}
// WordPress puts its command palette on every page of wp-admin: four megabytes of scripts, two thirds of the processor time of a page.
if ( ! isset( $codebox_toggles['palette'] ) ) {
	remove_action( 'admin_enqueue_scripts', 'wp_enqueue_command_palette_assets' );
}
if ( isset( $codebox_toggles['rtl'] ) ) {
	add_filter( 'gettext_with_context', static fn( string $text, string $original, string $context ): string => 'text direction' === $context ? 'rtl' : $text, 10, 3 );
}
// Without the host plugin that applies changes: no plugin applies them, or, with `direct`, Codebox itself.
if ( isset( $codebox_toggles['apply'] ) ) {
	add_filter( 'option_active_plugins', static fn( array $plugins ): array => array_values( array_filter( $plugins, static fn( string $plugin ): bool => ! str_starts_with( $plugin, 'host-plugin/' ) ) ) );
	add_filter( 'pre_option_wp_codebox_direct_apply', static fn(): string => 'direct' === $codebox_toggles['apply'] ? '1' : '0' );
	add_filter( 'pre_wp_mail', '__return_true' );
}
// A git repository whose directories have the names of those below wp-content.
if ( isset( $codebox_toggles['git'] ) ) {
	define( 'WP_CODEBOX_GIT_REPOSITORY', $codebox_toggles['git'] );
	add_filter( 'pre_option_wp_codebox_git_branch', static fn(): array => [ 'directory' => '{path}' ] );
}
add_action(
	'wp_footer',
	static function (): void {
		printf( '<p id="sample-greeting">%s</p>', function_exists( 'sample_greeting' ) ? esc_html( sample_greeting() ) : '' );
	}
);
