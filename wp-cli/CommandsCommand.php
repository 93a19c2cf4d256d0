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
 * Lists the commands available inside a sandbox.
 */
final class CommandsCommand extends Command {

	/**
	 * Lists the commands available inside a sandbox.
	 *
	 * A run policy refers to commands by these ids.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : Output format.
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
	 * : Print only ids, one per line.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox commands --fields=id,acceptedArgs --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
					Console::print( (string) implode( "\n", array_column( $rows, 'id' ) ) );
					return 0;
				}
				$this->table->print( $rows, [ 'id', 'description' ], 'id', $flags );
				return 0;
			}
		);
	}
}
