<?php
/**
 * `wp codebox artifacts preflight-apply|apply`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Apply\ArtifactService;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\PlainText;

defined( 'ABSPATH' ) || exit;

/**
 * Applies bundles. `RollbackCommands` takes back and discards, `ArtifactsCommand` holds the read-only subcommands.
 */
final class ArtifactDecisions extends Command {

	/**
	 * Shows what an apply would change, and fails where the apply would fail. Writes nothing.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--input-file=<file>]
	 * : File with the input as a JSON object of the ability's input schema; - reads STDIN. Flags override it.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline.
	 *
	 * [--approved-files=<paths>]
	 * : Changed files to approve, separated by commas or as a JSON list: paths as `artifacts get` lists
	 * them, or relative to the plugin or theme.
	 *
	 * [--all]
	 * : Approve every changed file.
	 *
	 * [--approver=<name>]
	 * : Name of the approver; the audit log also records the authenticated user.
	 *
	 * [--apply-target=<json>]
	 * : Target as a JSON object {"directory":"/path"}, needed when the change is not in an installed plugin
	 * or theme.
	 *
	 * [--manifest-sha256=<hash>]
	 * : SHA-256 of the reviewed manifest; the command fails when the stored manifest differs.
	 *
	 * [--confirm-browser-origin]
	 * : Also accept contents that a browser uploaded; this host did not see their code run.
	 *
	 * [--format=<format>]
	 * : Output format. table, csv and count list the approved files.
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
	 * : Print only the sha256 of the patch that would be applied.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts preflight-apply run_0123 --approved-files=sample.php
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
				foreach ( $answer['risks'] as $risk ) {
					$this->console->warn( sprintf( '%s %s: %s', $risk['flag'], PlainText::file_name( $risk['path'] ), $risk['sentence'] ) );
				}
				if ( ! empty( $flags['porcelain'] ) ) {
					Console::print( (string) $answer['patch_sha256'] );
				} else {
					$this->files( $answer, $answer['changed_files'], $flags );
				}
				return 0;
			}
		);
	}

	/**
	 * Applies approved files through the plugin of this site that handles applies.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--input-file=<file>]
	 * : File with the input as a JSON object of the ability's input schema; - reads STDIN. Flags override it.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline.
	 *
	 * [--approved-files=<paths>]
	 * : Changed files to approve, separated by commas or as a JSON list: paths as `artifacts get` lists
	 * them, or relative to the plugin or theme.
	 *
	 * [--all]
	 * : Approve every changed file.
	 *
	 * [--approver=<name>]
	 * : Name of the approver; the audit log also records the authenticated user.
	 *
	 * [--apply-target=<json>]
	 * : Target as a JSON object {"directory":"/path"}, needed when the change is not in an installed plugin
	 * or theme.
	 *
	 * [--manifest-sha256=<hash>]
	 * : SHA-256 of the reviewed manifest; the command fails when the stored manifest differs.
	 *
	 * [--confirm-sensitive]
	 * : Also write files that programs run or obey by themselves, such as must-use plugins and .htaccess.
	 *
	 * [--confirm-browser-origin]
	 * : Also accept contents that a browser uploaded; this host did not see their code run.
	 *
	 * [--format=<format>]
	 * : Output format of the result. table, csv and count list the applied files.
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
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
				if ( isset( $result['message'] ) ) {
					$this->console->say( $result['message'] );
				}
				if ( ! empty( $flags['porcelain'] ) ) {
					Console::print( $result['audit_reference'] );
				} else {
					$this->files( $answer, array_map( static fn( string $path ): array => [ 'path' => $path ], $result['applied_files'] ), $flags );
				}
				return $answer['success'] ? 0 : 1;
			}
		);
	}
}
