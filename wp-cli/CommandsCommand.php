<?php
/**
 * `wp codebox commands`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Capabilities;
use WPCodebox\Native\Policy;

defined( 'ABSPATH' ) || exit;

/**
 * Lists what can be run inside a sandbox.
 */
final class CommandsCommand extends Command {

	/**
	 * Lists the commands that can be run inside a sandbox.
	 *
	 * A policy names the commands of a run by these ids.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : How to print them.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: id, description, acceptedArgs, outputShape, outputSchema, policyRequirement, recipe.
	 *
	 * [--porcelain]
	 * : Print only ids, one a line.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox commands --fields=id,acceptedArgs --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox commands',
			Capabilities::RUN,
			null,
			$flags,
			function () use ( $flags ): int {
				$this->services->gate->check();
				$rows = array_values( Policy::commands()['commands'] );
				if ( ! empty( $flags['porcelain'] ) ) {
					fwrite( STDOUT, implode( "\n", array_column( $rows, 'id' ) ) . "\n" );
					return 0;
				}
				$this->table->print( $rows, [ 'id', 'description' ], 'id', $flags );
				return 0;
			}
		);
	}
}
