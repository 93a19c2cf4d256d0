<?php
/**
 * Runs before every script of the guest's web server: watches the request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require_once __DIR__ . '/entry.php';
require_once __DIR__ . '/page.php';

( static function (): void {
	$file = (string) getenv( 'CODEBOX_PAGE_DOCUMENT' );
	$page = new WPCodebox\Guest\Command\Page( 'server', array(), static fn (): ?int => null, null, false, new WPCodebox\Guest\Command\Watch() );
	// Registered while PHP shuts down, so that it comes after the end of WordPress.
	register_shutdown_function(
		static fn () => register_shutdown_function(
			static fn () => file_put_contents( $file, WPCodebox\Guest\Command\document_text( $page->document() ) )
		)
	);
} )();
