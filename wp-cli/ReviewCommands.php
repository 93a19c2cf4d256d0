<?php
/**
 * `wp codebox artifacts review|stage-apply`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Records decisions about a bundle: immediate ones, or pending ones that another person accepts later.
 */
final class ReviewCommands extends Command {

	/**
	 * Records a decision about a bundle. An approval also applies the change.
	 *
	 * A bundle that fails verification can still be rejected. Exit status 1 when the plugin that handles the
	 * decision reports a failure.
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
	 * [--action=<action>]
	 * : Decision: approve, reject or request-changes.
	 *
	 * [--approved-files=<paths>]
	 * : Changed files to approve, separated by commas or as a JSON list: paths as `artifacts get` lists
	 * them, or relative to the plugin or theme.
	 *
	 * [--all]
	 * : Approve every changed file.
	 *
	 * [--approver=<name>]
	 * : Name of the reviewer; the audit log also records the authenticated user.
	 *
	 * [--apply-target=<json>]
	 * : Target as a JSON object {"directory":"/path"}, needed when the change is not in an installed plugin
	 * or theme.
	 *
	 * [--manifest-sha256=<hash>]
	 * : SHA-256 of the reviewed manifest; an approval fails when the stored manifest differs.
	 *
	 * [--confirm-sensitive]
	 * : Also approve files that programs run or obey by themselves, such as must-use plugins and .htaccess.
	 *
	 * [--confirm-browser-origin]
	 * : Also accept contents that a browser uploaded; this host did not see their code run.
	 *
	 * [--reason=<text>]
	 * : Reason for the decision.
	 *
	 * [--decided-at=<time>]
	 * : Time of the decision, as 2026-01-31T12:00:00Z; default now.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
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
	 * : Columns: run_id, artifact_id, action, approved_files, adapter, status, audit_reference.
	 *
	 * [--porcelain]
	 * : Print only the audit reference of the plugin that handled the decision.
	 *
	 * ## EXAMPLES
	 *
	 *     # Reject a change.
	 *     $ wp codebox artifacts review run_0123 --action=reject --reason='The fix hides the error.'
	 *
	 *     # Approve one file, if the bundle is still the one that was read.
	 *     $ wp codebox artifacts review run_0123 --action=approve --approved-files=sample.php --manifest-sha256=$(wp codebox artifacts inspect run_0123 --porcelain)
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function review( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts review',
			Capabilities::REVIEW,
			'wp-codebox/review-artifact',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input  = FlagList::texts( $flags, [ 'action', 'reason', 'decided-at' ] ) + ( new Approval( $this->services ) )->input( $args, $flags );
				$input  = $this->services->schemas->valid( 'artifact-review-input', $input );
				$answer = $this->services->reviews->review( $input, $authority );
				$result = array_intersect_key( $answer['result'], array_flip( [ 'adapter', 'status', 'audit_reference' ] ) );
				if ( true !== $answer['verification']['valid'] ) {
					$this->console->say( 'The bundle does not verify; the decision is about a broken bundle.' );
				}
				$this->console->say( sprintf( '%s: %s. Audit reference %s.', $result['adapter'], $result['status'], $result['audit_reference'] ) );
				$row = in_array( $flags['format'], [ 'json', 'yaml' ], true ) ? $answer : $result + $answer;
				$this->row( $row, [ 'run_id', 'action', 'adapter', 'status', 'audit_reference' ], (string) $result['audit_reference'], $flags );
				return $answer['success'] ? 0 : 1;
			}
		);
	}

	/**
	 * Checks an apply and hands it to the plugin of this site that stores pending actions.
	 *
	 * The target stays unchanged until a user accepts the pending action.
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
	 * : Name of the requester; the audit log also records the authenticated user.
	 *
	 * [--apply-target=<json>]
	 * : Target as a JSON object {"directory":"/path"}, needed when the change is not in an installed plugin
	 * or theme.
	 *
	 * [--manifest-sha256=<hash>]
	 * : SHA-256 of the reviewed manifest; the command fails when the stored manifest differs.
	 *
	 * [--confirm-sensitive]
	 * : Also stage files that programs run or obey by themselves, such as must-use plugins and .htaccess.
	 *
	 * [--confirm-browser-origin]
	 * : Also accept contents that a browser uploaded; this host did not see their code run.
	 *
	 * [--summary=<text>]
	 * : One-sentence summary shown to the person who decides.
	 *
	 * [--agent-id=<id>]
	 * : Client-side id of the agent that made the change.
	 *
	 * [--for-user=<id>]
	 * : Id of the user who owns the pending action. With --user, only the id of that user is accepted.
	 *
	 * [--user-id=<id>]
	 * : Same as --for-user.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
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
	 * : Columns: run_id, artifact_id, approved_files, manifest_sha256, patch_sha256, and the columns of the
	 * plugin that stores the action.
	 *
	 * [--porcelain]
	 * : Print only the sha256 of the manifest that the pending apply is bound to.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts stage-apply run_0123 --all --summary='Fix the greeting'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function stage_apply( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts stage-apply',
			Capabilities::REVIEW,
			'wp-codebox/stage-artifact-apply',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input = FlagList::texts( $flags, [ 'summary', 'agent-id' ] ) + ( new Approval( $this->services ) )->input( $args, $flags );
				if ( isset( $flags['for-user'] ) || isset( $flags['user-id'] ) ) {
					$input['user_id'] = (int) ( $flags['for-user'] ?? $flags['user-id'] );
				}
				$input  = $this->services->schemas->valid( 'artifact-stage-input', $input );
				$answer = $this->services->stages->stage( $input, $authority );
				$this->console->say( sprintf( '%d changed files wait for a decision. Nothing was written.', count( $answer['approved_files'] ) ) );
				$this->row( $answer, [ 'run_id', 'approved_files', 'manifest_sha256' ], $answer['manifest_sha256'], $flags );
				return $answer['success'] ? 0 : 1;
			}
		);
	}
}
