<?php
/**
 * Ctrl-C.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

defined( 'ABSPATH' ) || exit;

/**
 * What a command does when it is asked to stop. Without the pcntl extension it just ends, and
 * with it every run that is attached to it.
 */
final class Interrupt {

	/**
	 * Replaces what SIGINT and SIGTERM do.
	 *
	 * @param callable(): void $body Called for each of them.
	 */
	public static function on( callable $body ): void {
		if ( ! function_exists( 'pcntl_signal' ) ) {
			return;
		}
		pcntl_async_signals( true );
		foreach ( [ SIGINT, SIGTERM ] as $signal ) {
			pcntl_signal( $signal, static fn() => $body() );
		}
	}
}
