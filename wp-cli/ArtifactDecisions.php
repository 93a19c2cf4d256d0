<?php
/**
 * `wp codebox artifacts preflight-apply|apply|discard`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Decisions about a bundle: what `ArtifactsCommand` shows is applied or thrown away here.
 */
final class ArtifactDecisions extends Command {

	/**
	 * Shows what an apply would hand over, and refuses what it would refuse. Writes nothing.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--approved-files=<paths>]
	 * : Changed files to approve, with commas or as a JSON list; as listed, or relative to the code.
	 *
	 * [--all]
	 * : Approve every changed file.
	 *
	 * [--approver=<name>]
	 * : Who approves; the audit log names the real user too.
	 *
	 * [--apply-target=<json>]
	 * : Where to apply when the change was not made in an installed plugin or theme: {"directory":"/path"}.
	 *
	 * [--manifest-sha256=<hash>]
	 * : Refuse unless this is the bundle that was reviewed.
	 *
	 * [--format=<format>]
	 * : How to print it. table, csv and count are about the approved files.
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
	 * : Columns of the approved files.
	 *
	 * [--porcelain]
	 * : Print only the sha256 of the patch that would be handed over.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts preflight-apply run_0123 --approved-files=sample.php
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function preflight_apply( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts preflight-apply',
			Capabilities::REVIEW,
			'wp-codebox/apply-artifact-preflight',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$answer = $this->services->applies->preflight( ( new Approval( $this->services ) )->input( $args, $flags ), $authority );
				$this->console->say( sprintf( 'The apply would hand over %d of %d changed files. Nothing was written.', count( $answer['approved_files'] ), count( ArtifactService::changed_files( $answer['artifact'] ) ) ) );
				if ( ! empty( $flags['porcelain'] ) ) {
					fwrite( STDOUT, $answer['patch_sha256'] . "\n" );
				} else {
					$this->files( $answer, $answer['changed_files'], $flags );
				}
				return 0;
			}
		);
	}

	/**
	 * Hands approved files to the plugin of this site that applies changes.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--approved-files=<paths>]
	 * : Changed files to approve, with commas or as a JSON list; as listed, or relative to the code.
	 *
	 * [--all]
	 * : Approve every changed file.
	 *
	 * [--approver=<name>]
	 * : Who approves; the audit log names the real user too.
	 *
	 * [--apply-target=<json>]
	 * : Where to apply when the change was not made in an installed plugin or theme: {"directory":"/path"}.
	 *
	 * [--manifest-sha256=<hash>]
	 * : Refuse unless this is the bundle that was reviewed.
	 *
	 * [--format=<format>]
	 * : How to print the result. table, csv and count are about the applied files.
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
	 * : Columns of the applied files: path.
	 *
	 * [--porcelain]
	 * : Print only the adapter's audit reference.
	 *
	 * ## EXAMPLES
	 *
	 *     # Apply one of the changed files.
	 *     $ wp codebox artifacts apply run_0123 --approved-files=sample.php --approver=jo
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function apply( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts apply',
			Capabilities::APPLY,
			'wp-codebox/apply-approved-artifact',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$answer = $this->services->applies->apply( ( new Approval( $this->services ) )->input( $args, $flags ), $authority );
				$result = $answer['result'];
				$this->console->say( sprintf( '%s: %s. Audit reference %s.', $result['adapter'], $result['status'], $result['audit_reference'] ) );
				if ( ! empty( $flags['porcelain'] ) ) {
					fwrite( STDOUT, Console::plain( $result['audit_reference'] ) . "\n" );
				} else {
					$this->files( $answer, array_map( static fn( string $path ): array => [ 'path' => $path ], $result['applied_files'] ), $flags );
				}
				return $answer['success'] ? 0 : 1;
			}
		);
	}

	/**
	 * Deletes a bundle for good, a broken one too.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--yes]
	 * : Do not ask. Nothing is asked either when STDIN is no terminal.
	 *
	 * [--format=<format>]
	 * : How to print what is gone.
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
	 * : Columns: run_id, artifact_id, discarded.
	 *
	 * [--porcelain]
	 * : Print only the run id.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts discard run_0123 --yes
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function discard( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts discard',
			Capabilities::REVIEW,
			'wp-codebox/discard-artifact',
			$flags,
			function () use ( $args, $flags ): int {
				$this->services->gate->check();
				if ( stream_isatty( STDIN ) ) {
					WP_CLI::confirm( sprintf( 'Delete the bundle %s for good?', $args[0] ), $flags );
				}
				$answer = $this->services->artifacts->discard( [ 'artifact_id' => $args[0] ] );
				$this->row( $answer, [ 'run_id', 'artifact_id', 'discarded' ], $answer['run_id'], $flags );
				return 0;
			}
		);
	}
}
