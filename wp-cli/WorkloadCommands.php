<?php
/**
 * `wp codebox run-wordpress-workload` and `run-fuzz-suite`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;

defined( 'ABSPATH' ) || exit;

/**
 * Each command prints the answer of the ability of its name.
 */
final class WorkloadCommands extends DocumentCommand {

	/**
	 * Runs commands in order in a WordPress of a disposable sandbox. Nothing runs on this site.
	 *
	 * Exit status: 0 completed, else that of the first error. The result is a JSON document.
	 *
	 * ## OPTIONS
	 *
	 * [--metadata=<json>]
	 * : Free-form data; returned in the result.
	 *
	 * [--input-file=<file>]
	 * : File with the ability input as a JSON object; - reads STDIN. Flags override its fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     # Ask the sandbox for its address.
	 *     $ wp codebox run-wordpress-workload --input-json='{"schema":"wp-codebox/wordpress-workload-run/v1","steps":[{"command":"wordpress.wp-cli","args":["command=option get home"]}]}'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function run_wordpress_workload( array $args, array $flags ): void {
		$this->enter(
			'run-wordpress-workload',
			$flags,
			'run-wordpress-workload-input',
			[
				'metadata' => 'json',
			],
			fn( array $input, Authority $authority ): array => $this->services->workloads->run( $input, $authority )
		);
	}

	/**
	 * Runs the cases of a suite in a WordPress of a disposable sandbox. Nothing runs on this site.
	 *
	 * Exit status: 0 all cases passed, else 1. The result is a JSON document.
	 *
	 * ## OPTIONS
	 *
	 * [--suite=<json>]
	 * : The suite as a JSON object; other flags override its fields.
	 *
	 * [--cases=<json>]
	 * : The cases as a JSON list.
	 *
	 * [--runner-mode=<mode>]
	 * : auto or runtime-backed; both run the cases in a sandbox.
	 *
	 * [--metadata=<json>]
	 * : Free-form data; returned in the result.
	 *
	 * [--input-file=<file>]
	 * : File with the ability input as a JSON object; - reads STDIN. Flags override its fields.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline instead of from a file.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: json
	 * options:
	 *   - json
	 *   - yaml
	 * ---
	 *
	 * ## EXAMPLES
	 *
	 *     # Run a suite from a file.
	 *     $ wp codebox run-fuzz-suite --input-file=suite.json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function run_fuzz_suite( array $args, array $flags ): void {
		$this->enter(
			'run-fuzz-suite',
			$flags,
			'run-fuzz-suite-input',
			[
				'suite'       => 'suite',
				'cases'       => 'json',
				'runner-mode' => 'text',
				'metadata'    => 'json',
			],
			fn( array $input, Authority $authority ): array => $this->services->fuzz->run( $input, $authority )
		);
	}
}
