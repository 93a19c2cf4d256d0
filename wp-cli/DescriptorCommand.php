<?php
/**
 * `wp codebox runtime descriptor` and `wp codebox wordpress-fuzz-runtime-contract`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_Codebox_API;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Describes this installation for other programs.
 */
final class DescriptorCommand extends Command {

	/**
	 * Shows versions, readiness, capabilities, abilities and schemas of this installation.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : Output format.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox runtime descriptor --format=yaml
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function descriptor( array $args, array $flags ): void {
		$this->document_of( 'codebox runtime descriptor', static fn(): array => WP_Codebox_API::runtime_descriptor(), $flags );
	}

	/**
	 * Shows what this installation offers to fuzz suites.
	 *
	 * ## OPTIONS
	 *
	 * [--format=<format>]
	 * : Output format.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox wordpress-fuzz-runtime-contract
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function fuzz_contract( array $args, array $flags ): void {
		$this->document_of( 'codebox wordpress-fuzz-runtime-contract', static fn(): array => WP_Codebox_API::wordpress_fuzz_runtime_contract(), $flags );
	}

	/**
	 * Prints one document.
	 *
	 * @param string               $command  Name of the command.
	 * @param callable(): array    $document Returns the document.
	 * @param array<string, mixed> $flags    Flags of the command line, by name.
	 */
	private function document_of( string $command, callable $document, array $flags ): void {
		$this->boundary->enter(
			$command,
			Capabilities::RUN,
			null,
			$flags,
			function () use ( $document, $flags ): int {
				$this->console->document( $document(), $flags['format'] );
				return 0;
			}
		);
	}
}
