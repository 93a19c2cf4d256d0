<?php
/**
 * Counts the database writes that a WP-CLI command makes after WordPress has been loaded.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require_once __DIR__ . '/action.php';

( static function (): void {
	$file   = (string) getenv( 'CODEBOX_WRITES' );
	$writes = new WPCodebox\Guest\Command\Writes();
	WP_CLI::add_wp_hook(
		'wp_loaded',
		static function () use ( $writes ): void {
			add_filter( 'query', array( $writes, 'see' ), PHP_INT_MAX );
		},
		PHP_INT_MAX
	);
	register_shutdown_function( static fn () => file_put_contents( $file, json_encode( $writes->row() ) ) );
} )();
