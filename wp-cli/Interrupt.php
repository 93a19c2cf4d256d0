<?php
/**
 * Reacts to SIGINT (Ctrl-C) and SIGTERM.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

defined( 'ABSPATH' ) || exit;

/**
 * Installs handlers for SIGINT and SIGTERM. Without the pcntl extension a signal ends the command at once,
 * and with the command every run attached to it.
 */
final class Interrupt {

	/**
	 * Replaces the handlers of SIGINT and SIGTERM.
	 *
	 * @param callable(): void $body Called for each signal.
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
