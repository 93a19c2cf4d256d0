<?php
/**
 * `wp codebox policy`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Capabilities;
use WPCodebox\Failure;
use WPCodebox\Native\Policy;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Shows the default run policy and checks policies.
 */
final class PolicyCommand extends Command {

	/**
	 * Shows the default policy, used for a run that requests none.
	 *
	 * ## OPTIONS
	 *
	 * [--commands=<ids>]
	 * : Commands that the policy allows; an agent task needs command-agent-run.
	 * ---
	 * default: command-agent-run
	 * ---
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
	 * : Columns: field, value.
	 *
	 * [--porcelain]
	 * : Print the policy as one line of JSON.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox policy show --format=json > policy.json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function show( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox policy show',
			Capabilities::RUN,
			null,
			$flags,
			function () use ( $flags ): int {
				$this->services->gate->check();
				$policy = Policy::defaults( FlagList::split( '--commands', (string) $flags['commands'] ) );
				if ( ! empty( $flags['porcelain'] ) ) {
					$this->console->json( $policy );
				} else {
					$rows = [];
					foreach ( $policy as $field => $value ) {
						$rows[] = [
							'field' => $field,
							'value' => is_array( $value ) && array_is_list( $value ) ? implode( ', ', $value ) : $value,
						];
					}
					$this->document( $policy, $rows, [ 'field', 'value' ], 'field', $flags );
				}
				return 0;
			}
		);
	}

	/**
	 * Checks whether a policy is well-formed and whether this host can enforce it.
	 *
	 * Prints one row per problem. Exit status 126 when a run with this policy would be refused.
	 *
	 * ## OPTIONS
	 *
	 * [<file>]
	 * : File with the policy as a JSON object; - reads STDIN.
	 *
	 * [--input-json=<json>]
	 * : Policy as a JSON object.
	 *
	 * [--format=<format>]
	 * : Output format of the problems.
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
	 * : Columns: code, field, message.
	 *
	 * [--porcelain]
	 * : Print only the error codes, one per line.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox policy validate policy.json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function validate( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox policy validate',
			Capabilities::RUN,
			null,
			$flags,
			function () use ( $args, $flags ): int {
				$this->services->gate->check();
				$issues = Policy::validate( $this->given( $args, $flags ) );
				if ( ! empty( $flags['porcelain'] ) ) {
					foreach ( array_column( $issues, 'code' ) as $code ) {
						Console::print( (string) $code );
					}
				} elseif ( [] !== $issues || 'table' !== $flags['format'] ) {
					$this->table->print( $issues, [ 'code', 'field', 'message' ], 'code', $flags );
				}
				$this->console->say( [] === $issues ? 'The policy is valid and can be enforced here.' : 'A run with this policy would be refused.' );
				return [] === $issues ? 0 : 126;
			}
		);
	}

	/**
	 * Reads the policy to check.
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 */
	private function given( array $args, array $flags ): array {
		if ( isset( $args[0] ) === isset( $flags['input-json'] ) ) {
			throw Failure::invalid_input( __( 'Give the policy either as a file or with --input-json.', 'codebox' ) );
		}
		if ( isset( $flags['input-json'] ) ) {
			return FlagList::json_object( '--input-json', (string) $flags['input-json'] );
		}
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- a local file, not a URL.
		$text = '-' === $args[0] ? stream_get_contents( STDIN ) : ( is_file( $args[0] ) ? file_get_contents( $args[0] ) : false );
		if ( false === $text ) {
			/* translators: %s: path. */
			throw Failure::invalid_input( Sentence::of( __( 'The file %s cannot be read.', 'codebox' ), $args[0] ) );
		}
		return FlagList::json_object( $args[0], $text );
	}
}
