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
 * Decisions about a bundle that leave a record: now, or by somebody else later.
 */
final class ReviewCommands extends Command {

	/**
	 * Takes a decision about a bundle and puts it on record. To approve is to apply.
	 *
	 * A broken bundle can be rejected too. Exit status 1 when whoever took the decision says that it failed.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * --action=<action>
	 * : What is decided: approve, reject or request-changes.
	 *
	 * [--approved-files=<paths>]
	 * : Changed files to approve, with commas or as a JSON list; as listed, or relative to the code.
	 *
	 * [--all]
	 * : Approve every changed file.
	 *
	 * [--approver=<name>]
	 * : Who decides; the audit log names the real user too.
	 *
	 * [--apply-target=<json>]
	 * : Where to apply when the change was not made in an installed plugin or theme: {"directory":"/path"}.
	 *
	 * [--manifest-sha256=<hash>]
	 * : Refuse an approval unless this is the bundle that was reviewed.
	 *
	 * [--reason=<text>]
	 * : Why.
	 *
	 * [--decided-at=<time>]
	 * : When, as 2026-01-31T12:00:00Z; now when it is left out.
	 *
	 * [--format=<format>]
	 * : How to print the result.
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
	 * : Print only the audit reference of whoever took the decision.
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
	 * @param array<string, mixed> $flags Flags.
	 */
	public function review( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts review',
			Capabilities::REVIEW,
			'wp-codebox/review-artifact',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input  = ( new Approval( $this->services ) )->input( $args, $flags ) + FlagList::texts( $flags, [ 'action', 'reason', 'decided-at' ] );
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
	 * Checks an apply and hands it to the plugin of this site that keeps pending actions.
	 *
	 * Nothing is written to the target before somebody accepts the pending action.
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
	 * : Who decides; the audit log names the real user too.
	 *
	 * [--apply-target=<json>]
	 * : Where to apply when the change was not made in an installed plugin or theme: {"directory":"/path"}.
	 *
	 * [--manifest-sha256=<hash>]
	 * : Refuse unless this is the bundle that was reviewed.
	 *
	 * [--summary=<text>]
	 * : One sentence for whoever decides.
	 *
	 * [--agent-id=<id>]
	 * : Your id of the agent that made the change.
	 *
	 * [--for-user=<id>]
	 * : Id of the user whose pending action it becomes. With --user only that user.
	 *
	 * [--format=<format>]
	 * : How to print the result.
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
	 * : Columns: run_id, artifact_id, approved_files, manifest_sha256, patch_sha256, and those of the plugin that keeps the action.
	 *
	 * [--porcelain]
	 * : Print only the sha256 of the manifest that the staged apply is bound to.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts stage-apply run_0123 --all --summary='Fix the greeting'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function stage_apply( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts stage-apply',
			Capabilities::REVIEW,
			'wp-codebox/stage-artifact-apply',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input = ( new Approval( $this->services ) )->input( $args, $flags ) + FlagList::texts( $flags, [ 'summary', 'agent-id' ] );
				if ( isset( $flags['for-user'] ) ) {
					$input['user_id'] = (int) $flags['for-user'];
				}
				$answer = $this->services->stages->stage( $input, $authority );
				$this->console->say( sprintf( '%d changed files wait for a decision. Nothing was written.', count( $answer['approved_files'] ) ) );
				$this->row( $answer, [ 'run_id', 'approved_files', 'manifest_sha256' ], $answer['manifest_sha256'], $flags );
				return $answer['success'] ? 0 : 1;
			}
		);
	}
}
