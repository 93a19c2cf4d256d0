<?php
/**
 * Base class of commands that pass one JSON document to an ability.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;

defined( 'ABSPATH' ) || exit;

/**
 * Prints the answer of the ability; its first error decides the exit status.
 */
abstract class DocumentCommand extends Command {

	/**
	 * Calls a service with the input of a command and prints its answer.
	 *
	 * @param string                            $name   Name of the command and of its ability.
	 * @param array<string, mixed>              $flags  Flags of the command line, by name.
	 * @param string                            $schema Name of the input schema.
	 * @param array<string, string>             $kinds  Type of the value of each flag, by name of the flag.
	 * @param callable(array, Authority): array $call   Calls the service.
	 */
	protected function enter( string $name, array $flags, string $schema, array $kinds, callable $call ): void {
		$this->boundary->enter(
			'codebox ' . $name,
			Capabilities::RUN,
			'wp-codebox/' . $name,
			$flags,
			function ( Authority $authority ) use ( $flags, $schema, $kinds, $call ): int {
				$this->services->gate->check();
				$answer = $call( DocumentFlags::input( $this->services, $schema, $flags, $kinds ), $authority );
				$this->console->document( $answer, $flags['format'] );
				if ( $answer['success'] ) {
					return 0;
				}
				$code = $answer['error']['code'] ?? $answer['diagnostics'][0]['code'] ?? '';
				return max( 1, ErrorCode::tryFrom( (string) $code )?->exit_status() ?? 1 );
			}
		);
	}
}
