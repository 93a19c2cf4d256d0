<?php
/**
 * Plugin Name: Codebox recovery link
 * Description: Takes a change of Codebox's direct apply back while plugins or the theme do not work. Codebox writes this file when direct apply is turned on and deletes it when direct apply is turned off.
 * Author:      Codebox contributors
 * License:     GPL-2.0-or-later
 *
 * WordPress loads must-use plugins in the order of their names, before other plugins and the theme. This file therefore
 * comes first, and uses only WordPress's options and the PHP extension, no file of Codebox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Recovery;

use Throwable;
use WPCodebox\Native\ChangeLock;
use WPCodebox\Native\Changes;
use WPCodebox\Native\Exception as NativeException;

defined( 'ABSPATH' ) || exit;

// phpcs:disable WordPress.Security -- No user and no nonce exist here: the token is the authorisation. Texts are constants.

// Without a name, because a second copy of this file under another name must not end every request with a fatal error.
( new class() {

	/** Option with the link that RecoveryLink::send() mailed, and query parameter with its token. */
	private const LINK = 'wp_codebox_recovery';

	/** Autoloaded option with the marks of changes whose end is not recorded, oldest first (ChangeMarks). */
	private const MARKS = 'wp_codebox_unrecorded_changes';

	/** Query parameter of the page that HealthCheck requests to load the site as WP-Cron does. */
	private const CRON = 'wp_codebox_cron';

	// Control and invisible characters; a copy of PlainText::HIDDEN, which a test compares.
	private const HIDDEN = '/[\x00-\x08\x0B-\x1F\x7F-\x{9F}\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}'
		. '\x{2028}-\x{202E}\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFFB}\x{1BCA0}-\x{1BCA3}\x{1D173}-\x{1D17A}\x{E0000}-\x{E0FFF}]/u';

	/** Answers the link, and watches the requests during a change. */
	public function run(): void {
		if ( isset( $_GET[ self::LINK ] ) ) {
			$this->answer( $_GET[ self::LINK ] );
		}
		$marks = get_option( self::MARKS );
		$mark  = is_array( $marks ) ? end( $marks ) : null;
		if ( is_array( $mark ) && class_exists( Changes::class, false ) ) {
			$this->as_cron( (string) ( $mark['check'] ?? '' ) );
			register_shutdown_function( fn() => $this->settle( (string) ( $mark['site'] ?? '' ) ) );
		}
	}

	/**
	 * Answers a request with a token and ends it. Opening the link only shows a button: mail scanners, which open links
	 * but press no button, change nothing.
	 *
	 * @param mixed $token Token as the browser sent it.
	 */
	private function answer( mixed $token ): never {
		$stored = get_option( self::LINK );
		$valid  = is_string( $token ) && is_array( $stored ) && time() < (int) ( $stored['ends'] ?? 0 ) && hash_equals( (string) ( $stored['hash'] ?? '' ), hash( 'sha256', $token ) );
		if ( ! $valid ) {
			$this->page( 403, 'This link is not valid any more: it works once, for one hour, and only for the newest change. Take the change back in the dashboard (Tools, Codebox), or with "wp-codebox undo" at the host.' );
		}
		if ( ! class_exists( Changes::class, false ) ) {
			$this->page( 500, 'The PHP extension wp_codebox is not loaded, so the change cannot be taken back here.' );
		}
		if ( 'POST' !== ( $_SERVER['REQUEST_METHOD'] ?? '' ) ) {
			$this->page( 200, 'Codebox wrote a change into files of this site. The button restores these files as they were before, except those that somebody changed since.', true );
		}
		try {
			$result = $this->redeem( $stored );
		} catch ( NativeException $exception ) {
			if ( 'wp_codebox_apply_undone' === $exception->errorCode ) {
				$this->page( 200, 'The change was taken back already, so it is not the cause if the site still fails.' );
			}
			$this->page( $exception->httpStatus, 'The change was not taken back, and the link stays valid: ' . implode( '. ', [ $exception->getMessage(), ...$exception->hints ] ) . '.' );
		} catch ( Throwable $thrown ) {
			// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the only trace of a defect.
			error_log( 'wp-codebox: ' . $thrown->getMessage() );
			$this->page( 500, 'The change was not taken back, and the link stays valid; the PHP error log has the reason.' );
		}
		$this->page(
			200,
			match ( true ) {
				'restored' === $result['status'] => 'The change was taken back. Every file is as before the change.',
				[] === $result['files']          => 'Every file was changed again since, so none was taken back.',
				default                          => 'Some files were changed again since and were left as they are; the others are as before the change.',
			}
		);
	}

	/**
	 * Takes the change of a valid link back. The link is used up when a file was restored.
	 *
	 * @param array<string, mixed> $stored Stored link.
	 * @return array<string, mixed> Result of `Changes::rollBack()`.
	 */
	private function redeem( array $stored ): array {
		// Held until this function returns, so that no other request settles the mark before the change is taken back.
		$lock   = $this->mark( $stored );
		$result = Changes::rollBack( $stored['site'], $stored['change'], [], [], [ $this, 'drop' ] );
		if ( [] !== $result['files'] ) {
			// If the database cannot be written, the link stays, but a change can be taken back only once.
			delete_option( self::LINK );
		}
		return $result;
	}

	/**
	 * Marks the roll back, so that the next request that loads Codebox writes its audit record. A roll back depends
	 * neither on this mark nor on the audit log.
	 *
	 * @param array<string, mixed> $stored Stored link.
	 */
	private function mark( array $stored ): ?ChangeLock {
		try {
			$lock = ChangeLock::take( $stored['site'] );
			// Another request may have written or removed a mark since this one read its options.
			wp_cache_delete( 'alloptions', 'options' );
			wp_cache_delete( 'notoptions', 'options' );
			$marks = get_option( self::MARKS );
			$mark  = [
				'began'     => time(),
				'about'     => [
					'event'  => 'rollback',
					'change' => $stored['change'],
				] + $stored['bundle'],
				'requester' => [ 'kind' => 'none' ],
				'locks'     => '',
				'site'      => $stored['site'],
			];
			update_option( self::MARKS, is_array( $marks ) ? [ ...$marks, $mark ] : [ $mark ], true );
			return $lock;
		} catch ( Throwable $thrown ) {
			// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the roll back goes on without a record.
			error_log( 'wp-codebox: ' . $thrown->getMessage() );
			return null;
		}
	}

	/**
	 * Loads the site as WP-Cron does and then ends the request. wp-cron.php itself closes the connection before it loads
	 * the site, so its answer does not show a fatal error.
	 *
	 * @param string $check Secret of the change that is being checked; '' when there is none.
	 */
	private function as_cron( string $check ): void {
		$given = $_GET[ self::CRON ] ?? '';
		if ( '' !== $check && is_string( $given ) && hash_equals( $check, $given ) ) {
			defined( 'DOING_CRON' ) || define( 'DOING_CRON', true );
			add_action( 'wp_loaded', static fn() => exit( 'loaded' ), PHP_INT_MAX );
		}
	}

	/**
	 * Finishes or reverses an interrupted change at the end of a request that failed before Codebox could do so. Does
	 * nothing while the request or the process that makes the change is alive.
	 *
	 * @param string $site Id of the site.
	 */
	private function settle( string $site ): void {
		if ( '' === $site || did_action( 'init' ) ) {
			return;
		}
		try {
			$lock = ChangeLock::take( $site );
			$this->drop( Changes::recover( $site )['paths'] );
		} catch ( Throwable $thrown ) {
			// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the next request tries again.
			error_log( 'wp-codebox: ' . $thrown->getMessage() );
		}
	}

	/**
	 * Drops files from the opcode cache of this PHP.
	 *
	 * @param list<string> $files Host paths.
	 */
	public function drop( array $files ): void {
		clearstatcache( true );
		foreach ( $files as $file ) {
			function_exists( 'opcache_invalidate' ) && opcache_invalidate( (string) $file, true );
		}
	}

	/**
	 * Prints a page and ends the request.
	 *
	 * @param int    $status HTTP status.
	 * @param string $text   Text of the page.
	 * @param bool   $button Whether the page has the button that takes the change back.
	 */
	private function page( int $status, string $text, bool $button = false ): never {
		http_response_code( $status );
		header( 'Content-Type: text/html; charset=utf-8' );
		header( 'Cache-Control: no-store' );
		header( 'Referrer-Policy: no-referrer' );
		header( 'X-Robots-Tag: noindex' );
		header( "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'" );
		echo '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Take a change back</title>';
		echo '<style>body{font:16px/1.5 sans-serif;max-width:34em;margin:4em auto;padding:0 1em}button{font:inherit;padding:.5em 1em}</style></head><body><h1>Take a change back</h1>';
		// An error message may quote a file name that a guest chose.
		echo '<p>' . htmlspecialchars( (string) preg_replace( self::HIDDEN, '', $text ) ) . '</p>';
		// The form is sent to the address of the page, which has the token.
		echo $button ? '<form method="post"><button>Take the change back</button></form>' : '<p><a href="' . htmlspecialchars( home_url( '/' ) ) . '">Open the site</a></p>';
		exit( '</body></html>' );
	}
} )->run();
