<?php
/**
 * Permission checks and error handling around each command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use Throwable;
use WP_CLI;
use WP_CLI\ExitException;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Without `--user` the command runs with the rights of the operator, who has shell access. With `--user` it
 * needs the same permission as the WordPress ability with the same effect. A failure ends the process with the exit
 * status of its error code.
 */
final class Boundary {

	/**
	 * Creates the boundary with its dependencies.
	 *
	 * @param Console      $console      Writer for STDERR messages.
	 * @param Capabilities $capabilities Permission checks of the user.
	 */
	public function __construct(
		private readonly Console $console,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Runs the body of a command and exits with its status.
	 *
	 * @param string                    $command    Command line without `wp`.
	 * @param string|list<string>       $capability Required capability; of a list, one is enough.
	 * @param string|null               $ability    Name of the ability with the same effect; null when there is none.
	 * @param array<string, mixed>      $flags      Flags as WP-CLI passes them.
	 * @param callable(Authority): int  $body       Runs the command and returns its exit status.
	 */
	public function enter( string $command, string|array $capability, ?string $ability, array $flags, callable $body ): void {
		$status = 0;
		try {
			$this->refuse_repeated_flags();
			$status = $body( $this->authority( (array) $capability, $ability ) );
		} catch ( ExitException $exit ) {
			throw $exit;
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			$this->console->error( $failure );
			if ( 'json' === ( $flags['format'] ?? '' ) ) {
				$this->console->document(
					[
						'schema'    => 'wp-codebox/cli-failure/v1',
						'success'   => false,
						'status'    => 'error',
						'command'   => $command,
						'error'     => $failure->to_array(),
						'exit_code' => $failure->exit_status,
					],
					'json'
				);
			}
			$status = $failure->exit_status;
		}
		if ( 0 !== $status ) {
			WP_CLI::halt( $status );
		}
	}

	/**
	 * Returns whether the command acts as the operator or as the user of `--user`; refuses a user without permission.
	 *
	 * @param list<string> $any     Capabilities, one of which is enough.
	 * @param string|null  $ability Name of the ability with the same effect; null when there is none.
	 * @throws Failure `wp_codebox_forbidden`.
	 */
	private function authority( array $any, ?string $ability ): Authority {
		if ( null === ( WP_CLI::get_config()['user'] ?? null ) ) {
			return Authority::Operator;
		}
		$registered = null !== $ability && function_exists( 'wp_get_ability' ) ? wp_get_ability( $ability ) : null;
		$allowed    = null === $registered ? $this->capabilities->allows( ...$any ) : $registered->check_permissions( [] );
		if ( true !== $allowed ) {
			throw Failure::because(
				ErrorCode::Forbidden,
				/* translators: %s: list of capabilities. */
				Sentence::of( __( 'The user given with --user may not do this; it needs the capability %s.', 'codebox' ), implode( ' or ', $any ) ),
				[ __( 'Leave --user out to act as the operator of this host, or name an administrator.', 'codebox' ) ]
			);
		}
		return Authority::User;
	}

	/**
	 * Refuses repeated flags: WP-CLI keeps only the last value and would drop the others silently.
	 *
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	private function refuse_repeated_flags(): void {
		$seen = [];
		foreach ( array_slice( (array) ( $GLOBALS['argv'] ?? [] ), 1 ) as $argument ) {
			if ( ! is_string( $argument ) || 1 !== preg_match( '/^--(?:no-)?([a-z][a-z0-9-]*)(?:=|$)/', $argument, $found ) || in_array( $found[1], [ 'require', 'exec' ], true ) ) {
				continue;
			}
			if ( isset( $seen[ $found[1] ] ) ) {
				throw Failure::invalid_input(
					/* translators: %s: name of a flag. */
					Sentence::of( __( 'The flag --%s is given more than once, and WP-CLI would keep only the last.', 'codebox' ), $found[1] ),
					/* translators: %s: name of a flag. */
					[ Sentence::of( __( 'Give several values as a JSON list: --%s=\'["first","second"]\'.', 'codebox' ), $found[1] ) ]
				);
			}
			$seen[ $found[1] ] = true;
		}
	}
}
