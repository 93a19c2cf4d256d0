<?php
/**
 * Runs before every script of the guest's web server and observes the request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require_once __DIR__ . '/entry.php';
require_once __DIR__ . '/page.php';

( static function (): void {
	$file = (string) getenv( 'CODEBOX_PAGE_DOCUMENT' );
	$page = new WPCodebox\Guest\Command\Page( new WPCodebox\Guest\Command\Page_Request( 'frontend', 'GET', '/', null ), static fn (): ?int => null, null, false, new WPCodebox\Guest\Command\Watch() );
	// Tells the reader of the file that the response is not a static file, and that a line with observations follows.
	file_put_contents( $file, "running\n" );
	// Registered during PHP's shutdown, so it runs after WordPress's shutdown functions.
	register_shutdown_function(
		static fn () => register_shutdown_function(
			static fn () => file_put_contents( $file, WPCodebox\Guest\Command\document_text( $page->seen() ) . "\n", FILE_APPEND )
		)
	);
} )();
