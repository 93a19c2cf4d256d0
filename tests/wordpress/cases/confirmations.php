<?php
/**
 * Files that programs run by themselves need a confirmation, whichever plugin applies the change.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$mount  = '/wordpress/wp-content/plugins/sample/';
	$plugin = WP_PLUGIN_DIR . '/sample/';
	$files  = [ $mount . '.htaccess', $mount . 'readme.txt' ];
	$clean  = static function () use ( $plugin ): void {
		foreach ( [ '.htaccess', 'readme.txt' ] as $file ) {
			is_file( $plugin . $file ) && unlink( $plugin . $file );
		}
	};
	$there  = static fn(): array => array_map( static fn( string $file ): bool => is_file( $plugin . $file ), [ '.htaccess', 'readme.txt' ] );

	$t->test(
		'confirmations: a change with a file that a program runs by itself reaches no adapter and no review filter without confirm_sensitive',
		static function () use ( $t, $files, $clean, $there ): void {
			$t->hosts(
				[ 'host-plugin', 'host-pending-actions' ],
				static function () use ( $t, $files, $clean, $there ): void {
					$clean();
					$id     = $t->made( 'htaccess' )['run']['run_id'];
					$input  = [
						'artifact_id'    => $id,
						'approved_files' => $files,
					];
					$called = [];
					foreach ( [ 'wp_codebox_apply_approved_artifact', 'wp_codebox_review_artifact_decision', 'wp_codebox_stage_pending_apply_artifact' ] as $hook ) {
						add_filter(
							$hook,
							static function ( mixed $result ) use ( &$called, $hook ): mixed {
								$called[] = $hook;
								return $result;
							},
							1
						);
					}
					$rest  = static function ( string $name, array $input ): WP_REST_Response {
						$request = new WP_REST_Request( 'POST', "/wp-abilities/v1/abilities/wp-codebox/$name/run" );
						$request->set_header( 'Content-Type', 'application/json' );
						$request->set_body( (string) wp_json_encode( [ 'input' => $input ] ) );
						return rest_do_request( $request );
					};
					$calls = [
						'apply'  => static fn( array $more ): mixed => $t->ability( 'apply-approved-artifact', $input + $more ),
						'review' => static fn( array $more ): mixed => $t->ability( 'review-artifact', $input + $more + [ 'action' => 'approve' ] ),
						'stage'  => static fn( array $more ): mixed => $t->ability( 'stage-artifact-apply', $input + $more ),
						'facade' => static fn( array $more ): mixed => WP_Codebox_API::apply_approved_artifact( $input + $more ),
						'rest'   => static function ( array $more ) use ( $rest, $input ): mixed {
							$response = $rest( 'apply-approved-artifact', $input + $more );
							return $response->is_error() ? $response->as_error() : $response->get_data();
						},
					];
					foreach ( $calls as $what => $call ) {
						foreach ( [ [], [ 'confirm_sensitive' => false ] ] as $more ) {
							$refused = $call( $more );
							$t->error( 'wp_codebox_apply_confirmation_missing', 403, $refused );
							$t->same( [ $files[0] ], $refused->get_error_data()['files'], $what );
							$t->same( [ 'failure', 'wp_codebox_apply_confirmation_missing' ], [ $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ], $what );
						}
						$t->same( [ [], [ false, false ] ], [ $called, $there() ], $what );
						$t->ok( $call( [ 'confirm_sensitive' => true ] ) );
						$t->true( [] !== $called, "$what: the control called no filter" );
						$t->same( array_fill( 0, 2, 'stage' !== $what ), $there(), $what );
						$called = [];
						$clean();
					}
					foreach ( [ [ 'apply' ], [ 'review', '--action=approve' ], [ 'stage-apply' ] ] as $words ) {
						$verb = array_shift( $words );
						$call = array_merge( [ 'codebox', 'artifacts', $verb, $id, '--all' ], $words );
						[ $code, , $err ] = $t->wp( $call );
						$t->same( [ 126, true, [ false, false ] ], [ $code, str_contains( $err, '(wp_codebox_apply_confirmation_missing)' ), $there() ], "$verb: $err" );
						if ( 'stage-apply' !== $verb ) {
							$t->same( 0, $t->wp( [ ...$call, '--confirm-sensitive' ] )[0], $verb );
							$t->same( [ true, true ], $there(), $verb );
							$clean();
						}
					}
				}
			);
		}
	);
	$t->test(
		'confirmations: the preflight lists the files for every adapter, and other files need no confirmation',
		static function () use ( $t, $files, $clean, $there ): void {
			$t->hosts(
				[ 'host-plugin' ],
				static function () use ( $t, $files, $clean, $there ): void {
					$clean();
					$id     = $t->made( 'htaccess' )['run']['run_id'];
					$flight = $t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $id, 'approved_files' => $files ] ) );
					$t->same( [ 'plugin', [ $files[0] ] ], [ $flight['adapter'], $flight['confirm_files'] ] );
					$t->ok( $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $id, 'approved_files' => [ $files[1] ] ] ) );
					$t->same( [ false, true ], $there() );
					$clean();
				}
			);
		}
	);
	$t->test(
		'confirmations: a staged change keeps its confirmation, and shows the files to the user who decides',
		static function () use ( $t, $files, $clean, $there ): void {
			$t->hosts(
				[ 'host-plugin', 'host-pending-actions' ],
				static function () use ( $t, $files, $clean, $there ): void {
					$store  = new WPCodeboxPendingActions\Pending_Actions();
					$clean();
					$id     = $t->made( 'htaccess' )['run']['run_id'];
					$staged = $t->ok( $t->ability( 'stage-artifact-apply', [ 'artifact_id' => $id, 'approved_files' => $files, 'confirm_sensitive' => true ] ) );
					$action = $store->get( $staged['pending_action_id'] );
					$t->same( [ true, [ $files[0] ] ], [ $action['apply_input']['confirm_sensitive'] ?? false, $action['preview_data']['confirm_files'] ?? [] ] );
					$t->ok( $store->accept( $staged['pending_action_id'] ) );
					$t->same( [ true, true ], $there() );
					$clean();
				}
			);
		}
	);
};
