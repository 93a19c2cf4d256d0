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
if ( isset( $codebox_toggles['rtl'] ) ) {
	add_filter( 'gettext_with_context', static fn( string $text, string $original, string $context ): string => 'text direction' === $context ? 'rtl' : $text, 10, 3 );
}
