<?php
/**
 * Review decisions: approve, reject, request changes.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$file   = '/wordpress/wp-content/plugins/sample/sample.php';
	$text   = static fn(): string => (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' );
	$review = static fn( array $made, array $input ): mixed => $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'] ] + $input );

	$t->test(
		'review: a missing or unknown action is refused and written to the audit log',
		static function () use ( $t, $review ): void {
			$made = $t->made();
			foreach ( [ [ [], 'missing' ], [ [ 'action' => ' ' ], 'missing' ], [ [ 'action' => 'merge' ], 'invalid' ] ] as [ $input, $what ] ) {
				$t->error( "wp_codebox_review_action_$what", 400, $review( $made, $input ) );
				$t->same( [ 'review', 'failure', "wp_codebox_review_action_$what" ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
			}
			$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( 'review-artifact', [ 'artifact_id' => 'run_' . str_repeat( '0', 32 ), 'action' => 'reject' ] ) );
			$t->error( 'wp_codebox_artifact_id_missing', 400, $t->ability( 'review-artifact', [ 'action' => 'reject' ] ) );
		}
	);
	foreach ( [ 'reject', 'request-changes' ] as $action ) {
		$t->test(
			"review: $action is accepted for a valid, a tampered and a broken bundle",
			static function () use ( $t, $review, $text, $action ): void {
				foreach ( [ 'good', 'tampered', 'broken' ] as $state ) {
					$made = $t->made();
					if ( 'tampered' === $state ) {
						$t->tamper( $made );
					} elseif ( 'broken' === $state ) {
						file_put_contents( $made['artifacts'] . '/manifest.json', '{' );
					}
					$done = $t->ok( $review( $made, [ 'action' => $action, 'reason' => 'Not like this.', 'context' => [ 'ticket' => 7 ] ] ) );
					$t->same( [ true, 'wp-codebox/artifact-review-result/v1', $action, 'good' === $state ], [ $done['success'], $done['schema'], $done['action'], $done['verification']['valid'] ], $state );
					$t->true( ! isset( $done['verification']['bundleDirectory'] ), 'the answer contains a path of the host' );
					$t->same( [ 'wp-codebox/default-review-decision', $action ], [ $done['result']['adapter'], $done['result']['status'] ] );
					$t->same( [ 'Not like this.', [ 'ticket' => 7 ], 'admin', false ], [ $done['decision']['reason'], $done['decision']['context'], $done['decision']['approver']['login'], $done['decision']['approver_claimed'] ] );
					$t->same( $done['decision'], $done['message']['decision'] );
					$line = $t->audited()[0];
					$t->same( [ 'review', 'success', $action, 'Not like this.', $made['run']['run_id'], $done['audit']['seq'], false ], [ $line['event'], $line['status'], $line['action'], $line['reason'], $line['run_id'], $line['seq'], $line['approver_claimed'] ?? null ] );
					$t->contains( "'helo'", $text() );
				}
			}
		);
	}
	$t->test(
		'review: a user with only the review capability can reject and cannot approve',
		static function () use ( $t, $review, $text, $file ): void {
			$made   = $t->made();
			$grant  = static fn( array $caps, string $cap ): array => 'wp_codebox_review' === $cap ? [ 'edit_posts' ] : $caps;
			$answer = $t->filtered(
				'map_meta_cap',
				$grant,
				static function () use ( $t, $review, $made, $file ): array {
					$t->as( 'editor' );
					return [
						$review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ),
						$t->audited()[0],
						$review( $made, [ 'action' => 'reject' ] ),
						$t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] ),
					];
				}
			);
			$t->error( 'wp_codebox_forbidden', 403, $answer[0] );
			$t->same( [ 'review', 'failure', 'approve', 'editor' ], [ $answer[1]['event'], $answer[1]['status'], $answer[1]['action'], $answer[1]['requester']['login'] ] );
			$t->same( true, $t->ok( $answer[2] )['success'], 'positive control: a rejection' );
			$t->same( 'ability_invalid_permissions', $answer[3]->get_error_code() );
			$t->contains( "'helo'", $text() );
			$t->as( 'administrator' );
			$t->ok( $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
			$t->contains( "'hello'", $text() );
		}
	);
	$t->test(
		'review: an approval applies the approved files and writes four audit records',
		static function () use ( $t, $review, $text, $file ): void {
			$made = $t->made();
			$done = $t->ok( $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ], 'approver' => 'Jo', 'decided_at' => '2026-01-31T12:00:00+01:00', 'manifest_sha256' => $made['run']['manifest_sha256'] ] ) );
			$t->same( [ true, [ $file ], 'Jo', true, '2026-01-31T12:00:00+01:00', 'wp-codebox/apply-result/v1', [ $file ] ], [ $done['success'], $done['approved_files'], $done['decision']['approver'], $done['decision']['approver_claimed'], $done['decision']['decided_at'], $done['result']['schema'], $done['result']['applied_files'] ] );
			$t->contains( "'hello'", $text() );
			$t->contains( "'moore'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/inc/more.php' ) );
			$lines = $t->audited( 4 );
			$t->same( [ [ 'review', 'started' ], [ 'apply-approved', 'started' ], [ 'apply', 'success' ], [ 'review', 'success' ] ], array_map( static fn( array $line ): array => [ $line['event'], $line['status'] ], $lines ) );
			$t->true( ! str_contains( (string) json_encode( $lines ), 'diff --git' ), 'the audit log holds a patch' );
		}
	);
	$t->test(
		'review: an invalid approval is refused before the decision filter is called',
		static function () use ( $t, $review, $text, $file ): void {
			$asked = 0;
			$spy   = static function ( mixed $result ) use ( &$asked ): mixed {
				++$asked;
				return $result;
			};
			$tries = [
				[ 'wp_codebox_approved_files_missing', 400, [] ],
				[ 'wp_codebox_approved_files_invalid', 400, [ 'approved_files' => [ '/etc/passwd' ] ] ],
				[ 'wp_codebox_artifact_changed', 409, [ 'approved_files' => [ $file ], 'manifest_sha256' => str_repeat( '0', 64 ) ] ],
				[ 'wp_codebox_input_invalid', 400, [ 'approved_files' => [ $file ], 'decided_at' => 'yesterday' ] ],
			];
			$t->filtered(
				'wp_codebox_review_artifact_decision',
				$spy,
				static function () use ( $t, $review, $file, $tries, &$asked ): void {
					$made = $t->made();
					foreach ( $tries as [ $code, $status, $input ] ) {
						$t->error( $code, $status, $review( $made, [ 'action' => 'approve' ] + $input ) );
						$t->same( [ 'review', 'failure', $code ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
					}
					file_put_contents( WP_PLUGIN_DIR . '/sample/sample.php', "<?php\n// somebody was here, still 'helo'\n" );
					$t->error( 'wp_codebox_apply_conflict', 409, $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
					$made = $t->made();
					$t->tamper( $made );
					$t->error( 'wp_codebox_artifact_verification_failed', 400, $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
					$t->same( 0, $asked, 'the decision filter was called' );
					$t->ok( $review( $made, [ 'action' => 'reject' ] ) );
					$t->same( 1, $asked, 'positive control' );
				}
			);
			$t->contains( "'helo'", $text() );
		}
	);
	$t->test(
		'review: a host plugin can take over the decision',
		static function () use ( $t, $review, $text, $file ): void {
			$made = $t->made();
			$seen = null;
			$take = static function ( mixed $result, array $request ) use ( &$seen ): array {
				$seen = $request;
				return [ 'adapter' => 'test', 'status' => 'queued', 'audit_reference' => 'q-1', 'ticket' => 7 ];
			};
			$done = $t->filtered( 'wp_codebox_review_artifact_decision', $take, static fn(): array => $t->ok( $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) ) );
			$t->same( [ 'wp-codebox/artifact-review-result/v1', 'test', 'queued', 7 ], [ $done['result']['schema'], $done['result']['adapter'], $done['result']['status'], $done['result']['ticket'] ] );
			$t->same( [ 'decision', 'message', 'artifact', 'artifact_verification' ], array_keys( $seen ) );
			$t->same( [ 'approve', [ $file ], 'wp-codebox:artifact-review-decision', $made['run']['run_id'], true ], [ $seen['decision']['action'], $seen['decision']['approved_files'], $seen['message']['type'], $seen['artifact']['run_id'], $seen['artifact_verification']['valid'] ] );
			$t->true( ! isset( $seen['artifact_verification']['bundleDirectory'] ), 'the request contains a path of the host' );
			$t->contains( "'helo'", $text() );
		}
	);
	$t->test(
		'review: an invalid answer of a host plugin is refused, and its own error passes through',
		static function () use ( $t, $review, $file ): void {
			$made    = $t->made();
			$good    = [ 'adapter' => 'test', 'status' => 'noted', 'audit_reference' => 'n-1' ];
			$applied = [ 'schema' => 'wp-codebox/apply-result/v1', 'target' => [ 'k' => 1 ], 'applied_files' => [ $file ] ] + $good;
			$answer  = static fn( mixed $with, array $input ): mixed => $t->filtered( 'wp_codebox_review_artifact_decision', static fn(): mixed => $with, static fn(): mixed => $review( $made, $input ) );
			$reject  = [ 'action' => 'reject' ];
			$approve = [ 'action' => 'approve', 'approved_files' => [ $file ] ];
			foreach ( [ true, 'done', [], [ 'status' => '' ] + $good, [ 'schema' => 'other' ] + $good ] as $bad ) {
				$t->error( 'wp_codebox_review_result_invalid', 502, $answer( $bad, $reject ) );
				$t->same( [ 'review', 'failure' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'] ] );
			}
			$t->error( 'host_says_no', 423, $answer( new WP_Error( 'host_says_no', 'Locked.', [ 'status' => 423 ] ), $reject ) );
			$t->error( 'wp_codebox_apply_result_invalid', 502, $answer( $applied, $reject ) );
			$t->error( 'wp_codebox_apply_result_invalid', 502, $answer( [ 'applied_files' => [ '/etc/passwd' ] ] + $applied, $approve ) );
			$t->same( [ $file ], $t->ok( $answer( $applied, $approve ) )['result']['applied_files'], 'positive control' );
			// Optional members of another type are left out: they make neither this answer nor a later one invalid.
			$odd = $t->ok( $answer( $applied + [ 'pr_url' => null, 'commit' => 7, 'branch' => 'main', 'health' => 'ok', 'conflicts' => 'none' ], $approve ) )['result'];
			$t->same( [ 'branch' => 'main' ], array_intersect_key( $odd, array_flip( [ 'pr_url', 'commit', 'branch', 'health', 'conflicts' ] ) ) );
			$t->error( 'wp_codebox_apply_result_invalid', 502, $answer( [ 'target' => new stdClass() ] + $applied, $approve ) );
			$t->ok( $answer( $good + [ 'message' => [ 'x' ] ], $reject ) );
			$t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			$failed = $t->ok( $answer( [ 'status' => 'failed' ] + $good, $reject ) );
			$t->same( [ false, 'failure' ], [ $failed['success'], $t->audited()[0]['status'] ] );
			$log    = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$thrown = $t->filtered( 'wp_codebox_review_artifact_decision', static fn() => throw new LogicException( 'secret path' ), static fn(): mixed => $review( $made, $reject ) );
			ini_set( 'error_log', (string) $log );
			$t->error( 'wp_codebox_review_result_invalid', 502, $thrown );
			$t->true( ! str_contains( $thrown->get_error_message() . json_encode( $thrown->get_error_data() ), 'secret path' ), 'the text of the exception is in the answer' );
		}
	);
	$t->test(
		'review: the audit record holds the current manifest digest and the one that the reviewer saw',
		static function () use ( $t, $review ): void {
			$made = $t->made();
			$done = $t->ok( $review( $made, [ 'action' => 'reject', 'manifest_sha256' => str_repeat( '0', 64 ) ] ) );
			$t->same( [ $made['run']['manifest_sha256'], str_repeat( '0', 64 ) ], [ $done['decision']['manifest_sha256'], $t->audited()[0]['reviewed_manifest_sha256'] ] );
		}
	);
	$t->test(
		'review: a discard is written to the audit log before and after',
		static function () use ( $t ): void {
			$made = $t->made( 'nothing' );
			file_put_contents( $made['artifacts'] . '/manifest.json', '{' );
			$t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			$t->same( [ [ 'discard', 'started', $made['run']['run_id'] ], [ 'discard', 'success', $made['run']['run_id'] ] ], array_map( static fn( array $line ): array => [ $line['event'], $line['status'], $line['run_id'] ], $t->audited( 2 ) ) );
		}
	);
	if ( 'fake' === $t->phase ) {
		$t->test(
			'review: a decision is refused when the audit log cannot be written',
			static function () use ( $t, $review, $text, $file ): void {
				$made = $t->made();
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN=1' );
				$t->error( 'wp_codebox_audit_failed', 500, $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
				$t->contains( "'helo'", $text() );
				$t->error( 'wp_codebox_audit_failed', 500, $review( $made, [ 'action' => 'reject' ] ) );
				$t->error( 'wp_codebox_audit_failed', 500, $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN' );
				$t->true( is_dir( $made['artifacts'] ), 'the bundle was discarded without an audit record' );
				$t->ok( $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
			}
		);
		$t->test(
			'review: an approval needs a trusted signature, a rejection does not',
			static function () use ( $t, $review, $file ): void {
				$made = $t->made();
				putenv( 'WP_CODEBOX_FAKE_SIGNATURE=signed-by-unknown' );
				$t->error( 'wp_codebox_artifact_untrusted', 403, $review( $made, [ 'action' => 'approve', 'approved_files' => [ $file ] ] ) );
				$t->ok( $review( $made, [ 'action' => 'reject' ] ) );
			}
		);
	}
};
