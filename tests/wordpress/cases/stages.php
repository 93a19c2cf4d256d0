<?php
/**
 * Staged applies: staging, accepting, rejecting.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$file  = '/wordpress/wp-content/plugins/sample/sample.php';
	$text  = static fn(): string => (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' );
	$stage = static fn( array $made, array $input = [] ): mixed => $t->ability( 'stage-artifact-apply', $input + [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] );
	// Calls the body while the site has the example store of pending actions and the example adapter.
	$with  = static fn( callable $body ): mixed => $t->hosts( [ 'host-plugin', 'host-pending-actions' ], static fn(): mixed => $body( new WPCodeboxPendingActions\Pending_Actions() ) );

	$t->test(
		'stage: without a store of pending actions a change is not staged, and the audit log says so',
		static function () use ( $t, $stage ): void {
			$t->error( 'wp_codebox_pending_apply_unavailable', 501, $stage( $t->made() ) );
			$t->same( [ 'stage-apply', 'failure', 'wp_codebox_pending_apply_unavailable' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
		}
	);
	$t->test(
		'stage: a staged change is stored, can be accepted once, and is applied exactly',
		static function () use ( $t, $with, $stage, $text, $file ): void {
			$with(
				static function ( object $store ) use ( $t, $stage, $text, $file ): void {
					$made   = $t->made();
					$staged = $t->ok( $stage( $made, [ 'summary' => 'Fix the greeting', 'agent_id' => 'agent-7', 'context' => [ 'ticket' => 7 ], 'approver' => 'Jo' ] ) );
					$t->same( [ true, 'wp-codebox/artifact-apply-stage/v1', [ $file ], $made['run']['manifest_sha256'], 'pending' ], [ $staged['success'], $staged['schema'], $staged['approved_files'], $staged['manifest_sha256'], $staged['pending_action']['status'] ] );
					$t->same( $staged['pending_action']['pending_action_id'], $staged['pending_action_id'] );
					$action = $store->get( $staged['pending_action_id'] );
					$t->same( [ 'wp_codebox_apply_back', 'Fix the greeting', 'agent-7', 1, [ 'ticket' => 7 ] ], [ $action['kind'], $action['summary'], $action['agent_id'], $action['user_id'], $action['context'] ] );
					$t->same( [ 'artifact_id' => $made['artifact_id'], 'run_id' => $made['run']['run_id'], 'approved_files' => [ $file ], 'manifest_sha256' => $made['run']['manifest_sha256'], 'approval' => $action['apply_input']['approval'], 'approver' => 'Jo' ], $action['apply_input'] );
					$preview = $action['preview_data'];
					$t->same( [ 'wp-codebox/pending-apply-preview/v1', $made['artifact_id'], true, [ $file ], [ $file ] ], [ $preview['schema'], $preview['artifact_id'], $preview['verification']['valid'], $preview['approved_files'], array_column( $preview['changed_files'], 'path' ) ] );
					$t->true( ! isset( $preview['verification']['bundleDirectory'] ), 'the preview contains a path of the host' );
					$t->true( isset( $preview['content_digest'], $preview['created_at'], $preview['test_results'], $preview['review'] ), 'a field is missing in the preview' );
					$results = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/test-results.v1.schema.json' ), true );
					$t->same( true, rest_validate_value_from_schema( $preview['test_results'], $results, 'test_results' ), (string) json_encode( $preview['test_results'] ) );
					$t->contains( "'helo'", $text() );
					$t->same( [ 'stage-apply', 'success', 'Jo', true ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['approver'], $t->audited()[0]['approver_claimed'] ?? null ] );

					$done = $t->ok( $store->accept( $staged['pending_action_id'] ) );
					$t->same( [ 'wp-codebox/artifact-apply/v1', true, [ $file ], $staged['patch_sha256'] ], [ $done['schema'], $done['success'], $done['approved_files'], $done['patch_sha256'] ] );
					$t->contains( "'hello'", $text() );
					$t->contains( "'moore'", (string) file_get_contents( WP_PLUGIN_DIR . '/sample/inc/more.php' ) );
					$t->same( [ 'apply', 'success', 'Jo', true, 'admin' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['approver'], $t->audited()[0]['approver_claimed'], $t->audited()[0]['requester']['login'] ] );
					$t->error( 'pending_action_decided', 409, $store->accept( $staged['pending_action_id'] ) );
					$t->error( 'pending_action_decided', 409, $store->reject( $staged['pending_action_id'] ) );
				}
			);
		}
	);
	$t->test(
		'stage: a rejected change is not applied',
		static function () use ( $t, $with, $stage, $text ): void {
			$with(
				static function ( object $store ) use ( $t, $stage, $text ): void {
					$id = $t->ok( $stage( $t->made() ) )['pending_action_id'];
					$t->contains( 'Apply 1 changed file.', $store->get( $id )['summary'] );
					$t->same( 'rejected', $t->ok( $store->reject( $id ) )['status'] );
					$t->error( 'pending_action_decided', 409, $store->accept( $id ) );
					$t->contains( "'helo'", $text() );
				}
			);
		}
	);
	$t->test(
		'stage: a change that an apply would refuse is not staged',
		static function () use ( $t, $with, $stage, $file ): void {
			$kept = new ArrayObject();
			$spy  = static function ( mixed $result ) use ( $kept ): mixed {
				$kept->append( true );
				return $result;
			};
			$with(
				static fn(): mixed => $t->filtered(
					'wp_codebox_stage_pending_apply_artifact',
					$spy,
					static function () use ( $t, $stage, $file, $kept ): void {
						$made = $t->made();
						foreach ( [
							[ 'wp_codebox_approved_files_missing', 400, [ 'approved_files' => [] ] ],
							[ 'wp_codebox_approved_files_invalid', 400, [ 'approved_files' => [ $file, '/etc/passwd' ] ] ],
							[ 'wp_codebox_artifact_changed', 409, [ 'manifest_sha256' => str_repeat( '0', 64 ) ] ],
							[ 'wp_codebox_forbidden', 403, [ 'user_id' => 4711 ] ],
							[ 'wp_codebox_artifact_not_found', 404, [ 'artifact_id' => 'run_' . str_repeat( '0', 32 ) ] ],
						] as [ $code, $status, $input ] ) {
							$t->error( $code, $status, $stage( $made, $input ) );
							$t->same( [ 'stage-apply', 'failure', $code ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
						}
						file_put_contents( WP_PLUGIN_DIR . '/sample/sample.php', "<?php\n" );
						$t->error( 'wp_codebox_apply_conflict', 409, $stage( $made ) );
						$made = $t->made();
						$t->tamper( $made );
						$t->error( 'wp_codebox_artifact_verification_failed', 400, $stage( $made ) );
						$t->same( 0, count( $kept ), 'the store was called for a refused change' );
						$t->ok( $stage( $t->made(), [ 'user_id' => 1 ] ) );
						$t->same( 1, count( $kept ), 'positive control' );
					}
				)
			);
		}
	);
	$t->test(
		'stage: an acceptance is refused when bundle or target changed after staging',
		static function () use ( $t, $with, $stage, $text ): void {
			$with(
				static function ( object $store ) use ( $t, $stage, $text ): void {
					$made = $t->made();
					$id   = $t->ok( $stage( $made ) )['pending_action_id'];
					$t->tamper( $made );
					$t->error( 'wp_codebox_artifact_verification_failed', 400, $store->accept( $id ) );
					$t->same( [ 'failed', 'apply', 'failure' ], [ $store->get( $id )['status'], $t->audited()[0]['event'], $t->audited()[0]['status'] ] );
					$t->contains( "'helo'", $text() );

					$made = $t->made();
					$id   = $t->ok( $stage( $made ) )['pending_action_id'];
					file_put_contents( WP_PLUGIN_DIR . '/sample/sample.php', "<?php\n// somebody was here\n" );
					$t->error( 'wp_codebox_apply_conflict', 409, $store->accept( $id ) );
					$t->same( "<?php\n// somebody was here\n", $text() );

					$made = $t->made();
					$id   = $t->ok( $stage( $made ) )['pending_action_id'];
					$t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
					$t->error( 'wp_codebox_artifact_not_found', 404, $store->accept( $id ) );
				}
			);
		}
	);
	$t->test(
		'stage: the handler refuses input that differs from what was staged',
		static function () use ( $t, $with, $stage, $text ): void {
			$with(
				static function ( object $store ) use ( $t, $stage, $text ): void {
					$input = $store->get( $t->ok( $stage( $t->made() ) )['pending_action_id'] )['apply_input'];
					$apply = apply_filters( 'wp_codebox_pending_apply_artifact_handlers', [] )['wp_codebox_apply_back']['apply'];
					foreach ( [ null, [], [ 'manifest_sha256' => '' ] + $input, [ 'artifacts_path' => '/tmp' ] + $input, array_diff_key( $input, [ 'manifest_sha256' => 1 ] ), array_diff_key( $input, [ 'approval' => 1 ] ), array_diff_key( $input, [ 'approved_files' => 1 ] ) ] as $bad ) {
						$t->error( 'wp_codebox_input_invalid', 400, $apply( $bad ) );
					}
					$t->error( 'wp_codebox_artifact_changed', 409, $apply( [ 'manifest_sha256' => str_repeat( '0', 64 ) ] + $input ) );
					// A store that alters the staged input: another file, another digest.
					$t->error( 'wp_codebox_artifact_changed', 409, $apply( [ 'approved_files' => [ ...$input['approved_files'], dirname( $input['approved_files'][0] ) . '/inc/more.php' ] ] + $input ) );
					$t->error( 'wp_codebox_artifact_changed', 409, $apply( [ 'approval' => str_repeat( '0', 64 ) ] + $input ) );
					$t->error( 'wp_codebox_artifact_changed', 409, $apply( [ 'artifact_id' => 'artifact-bundle-sha256-' . str_repeat( '0', 64 ) ] + $input ) );
					foreach ( [ 'editor', 'nobody' ] as $role ) {
						$t->as( $role );
						$t->error( 'wp_codebox_forbidden', 403, $apply( $input ) );
					}
					$t->contains( "'helo'", $text() );
					$t->as( 'administrator' );
					$t->ok( $apply( $input ) );
					$t->contains( "'hello'", $text() );
				}
			);
		}
	);
	$t->test(
		'stage: only a user who may apply can decide, and the filter can only deny',
		static function () use ( $t, $with, $stage, $text ): void {
			$can    = apply_filters( 'wp_codebox_pending_apply_artifact_handlers', [ 'other' => [] ] )['wp_codebox_apply_back']['can_resolve'];
			$editor = get_user_by( 'login', 'editor' )->ID;
			foreach ( [ [ null, true, false ], [ true, true, false ], [ false, false, false ], [ 1, false, false ] ] as [ $answer, $admin, $other ] ) {
				$seen = $t->filtered( 'wp_codebox_can_resolve_pending_apply_artifact', static fn( bool $allowed ): mixed => $answer ?? $allowed, static fn(): array => [ $can( [], 'accepted', 1 ), $can( [], 'rejected', 1 ), $can( [], 'accepted', $editor ), $can( [], 'accepted', 0 ), $can() ] );
				$t->same( [ $admin, $admin, $other, $other, $other ], $seen, var_export( $answer, true ) );
			}
			$t->same( false, $t->filtered( 'wp_codebox_can_run_agent_task', '__return_false', static fn(): bool => $can( [], 'accepted', 1 ) ), 'the filter of all capabilities applies too' );
			$with(
				static function ( object $store ) use ( $t, $stage, $text ): void {
					$id = $t->ok( $stage( $t->made() ) )['pending_action_id'];
					$t->as( 'editor' );
					$t->error( 'pending_action_forbidden', 403, $store->accept( $id ) );
					$t->contains( "'helo'", $text() );
					$t->as( 'administrator' );
					$t->ok( $store->accept( $id ) );
				}
			);
		}
	);
	$t->test(
		'stage: an invalid answer of the store is refused, and its own error passes through',
		static function () use ( $t, $stage, $text ): void {
			$made   = $t->made();
			$answer = static fn( callable $keeper ): mixed => $t->hosts( [], static fn(): mixed => $t->filtered( 'wp_codebox_stage_pending_apply_artifact', $keeper, static fn(): mixed => $stage( $made ) ) );
			foreach ( [ true, 'id', [], [ 'a' ] ] as $bad ) {
				$t->error( 'wp_codebox_apply_result_invalid', 502, $answer( static fn(): mixed => $bad ) );
				$t->same( [ 'stage-apply', 'failure' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'] ] );
			}
			$t->error( 'store_full', 507, $answer( static fn(): WP_Error => new WP_Error( 'store_full', 'Full.', [ 'status' => 507 ] ) ) );
			$t->same( false, $t->ok( $answer( static fn(): array => [ 'success' => false ] ) )['success'] );
			$log    = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$thrown = $answer( static fn() => throw new LogicException( 'secret path' ) );
			ini_set( 'error_log', (string) $log );
			$t->error( 'wp_codebox_apply_result_invalid', 502, $thrown );
			$t->true( ! str_contains( (string) json_encode( [ $thrown->get_error_message(), $thrown->get_error_data() ] ), 'secret path' ), 'the text of the exception is in the answer' );
			$t->same( 'x', $t->ok( $answer( static fn(): array => [ 'id' => 'x' ] ) )['pending_action']['id'], 'positive control' );
			$t->contains( "'helo'", $text() );
		}
	);
};
