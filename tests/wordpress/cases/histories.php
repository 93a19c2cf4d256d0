<?php
/**
 * State and history of a bundle.
 */

declare(strict_types=1);

use WPCodebox\AuditTrail;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$inspect = static fn( array $made ): array => $t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
	$listed  = static function ( array $made ) use ( $t ): ?string {
		$rows = $t->ok( $t->ability( 'list-artifacts', [ 'per_page' => 5 ] ) )['artifacts'];
		return array_column( $rows, 'state', 'run_id' )[ $made['run']['run_id'] ] ?? null;
	};
	$apply   = static fn( array $made, array $files ): mixed => $t->ability( 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => $files ] );
	$review  = static fn( array $made, string $action, array $more = [] ): mixed => $t->ability( 'review-artifact', [ 'artifact_id' => $made['run']['run_id'], 'action' => $action ] + $more );
	$events  = static fn( array $answer ): array => array_map( static fn( array $row ): string => $row['event'] . ' ' . $row['status'], $answer['history'] );

	$t->test(
		'history: a bundle is open, then applied in part, then applied, in list, inspection and get-artifact',
		static function () use ( $t, $inspect, $listed, $apply, $events ): void {
			$made  = $t->made();
			$files = array_column( $made['changed_files'], 'path' );
			$t->same( 2, count( $files ) );
			$open = $inspect( $made );
			$t->same( [ 'open', 'open', [], [], true, 'plugin' ], [ $open['state'], $listed( $made ), $open['history'], $open['applied_files'], $open['history_complete'], $open['adapter'] ] );
			$t->ok( $apply( $made, [ $files[0] ] ) );
			$part = $inspect( $made );
			$t->same( [ 'applied-in-part', 'applied-in-part', [ 'apply success' ] ], [ $part['state'], $listed( $made ), $events( $part ) ] );
			$t->same( [ [ 'path' => $files[0], 'adapter' => 'example-host/git-apply', 'reference' => $part['history'][0]['reference'] ] ], $part['applied_files'] );
			$row = $part['history'][0];
			$t->same( [ [ $files[0] ], 'example-host/git-apply', 'admin' ], [ $row['files'], $row['adapter'], $row['who']['login'] ] );
			$t->true( str_starts_with( $row['reference'], 'example-host-' ) && false !== strtotime( $row['time'] ), 'reference and time' );
			$t->ok( $apply( $made, [ $files[1] ] ) );
			$all = $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			$t->same( [ 'applied', 'applied', [ 'apply success', 'apply success' ] ], [ $all['state'], $listed( $made ), $events( $all ) ] );
		}
	);
	$t->test(
		'history: a recorded message that is no text and files that are no paths are left out of the row',
		static function () use ( $t, $inspect ): void {
			$made = $t->made();
			AuditTrail::append(
				( new Site( new InstalledCode() ) )->id(),
				[
					'schema'         => 'wp-codebox/apply-audit/v1',
					'event'          => 'review',
					'action'         => 'reject',
					'status'         => 'success',
					'requester'      => [ 'kind' => 'none' ],
					'approved_files' => [ 7, 'a.php' ],
					'result'         => [ 'message' => [ 'x' ] ],
				] + array_intersect_key( $made, [ 'artifact_id' => 1 ] ) + [ 'run_id' => $made['run']['run_id'] ]
			);
			$row = $inspect( $made )['history'][0];
			$t->same( [ [ 'a.php' ], false ], [ $row['files'], isset( $row['message'] ) ] );
		}
	);
	$t->test(
		'history: an approval through review has one row, and a refused one names its error',
		static function () use ( $t, $inspect, $review, $events ): void {
			$made  = $t->made();
			$files = array_column( $made['changed_files'], 'path' );
			$t->ok( $review( $made, 'approve', [ 'approved_files' => $files ] ) );
			$t->same( [ 'applied', [ 'apply success' ] ], [ $inspect( $made )['state'], $events( $inspect( $made ) ) ] );
			$t->error( 'wp_codebox_apply_conflict', 409, $review( $made, 'approve', [ 'approved_files' => $files ] ) );
			$answer = $inspect( $made );
			$t->same( [ 'applied', 'wp_codebox_apply_conflict' ], [ $answer['state'], end( $answer['history'] )['error'] ] );
		}
	);
	$t->test(
		'history: the files that a plugin applied when it took the decision count as applied',
		static function () use ( $t, $inspect, $review ): void {
			$made   = $t->made();
			$files  = array_column( $made['changed_files'], 'path' );
			$answer = [ 'schema' => 'wp-codebox/apply-result/v1', 'adapter' => 'test', 'status' => 'applied', 'audit_reference' => 'test-7', 'target' => [ 'kind' => 'test' ], 'applied_files' => [ $files[1] ] ];
			$t->filtered( 'wp_codebox_review_artifact_decision', static fn(): array => $answer, static fn() => $t->ok( $review( $made, 'approve', [ 'approved_files' => $files ] ) ) );
			$found = $inspect( $made );
			$t->same( [ 'applied-in-part', [ [ 'path' => $files[1], 'adapter' => 'test', 'reference' => 'test-7' ] ], 'test-7' ], [ $found['state'], $found['applied_files'], $found['history'][0]['reference'] ] );
		}
	);
	$t->test(
		'history: a rejection, with its reason, decides the state; a request for changes leaves it open',
		static function () use ( $t, $inspect, $listed, $review ): void {
			$made = $t->made();
			$t->ok( $review( $made, 'request-changes', [ 'reason' => 'shorter' ] ) );
			$t->same( 'open', $inspect( $made )['state'] );
			$t->ok( $review( $made, 'reject', [ 'reason' => 'not wanted' ] ) );
			$answer = $inspect( $made );
			$t->same( [ 'rejected', 'rejected' ], [ $answer['state'], $listed( $made ) ] );
			$t->same( [ [ 'request-changes', 'shorter' ], [ 'reject', 'not wanted' ] ], array_map( static fn( array $row ): array => [ $row['action'], $row['message'] ], $answer['history'] ) );
			$t->same( 'discarded', $t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) )['state'] );
		}
	);
	if ( 'native' !== $t->phase ) {
		$t->test(
			'history: records before the searched part of the log matter only for a bundle that is older than that part',
			static function () use ( $t, $inspect, $listed, $apply ): void {
				$made  = $t->made();
				$files = array_column( $made['changed_files'], 'path' );
				try {
					putenv( 'WP_CODEBOX_FAKE_AUDIT_SINCE=2001-01-01T00:00:00Z' );
					$t->same( [ 'open', true, 'open' ], [ $inspect( $made )['state'], $inspect( $made )['history_complete'], $listed( $made ) ] );
					putenv( 'WP_CODEBOX_FAKE_AUDIT_SINCE=2101-01-01T00:00:00Z' );
					$t->same( [ null, false, null ], [ $inspect( $made )['state'] ?? null, $inspect( $made )['history_complete'], $listed( $made ) ] );
					$t->ok( $apply( $made, $files ) );
					$t->same( [ 'applied', false, 'applied' ], [ $inspect( $made )['state'], $inspect( $made )['history_complete'], $listed( $made ) ] );
				} finally {
					putenv( 'WP_CODEBOX_FAKE_AUDIT_SINCE' );
				}
			}
		);
	}
	$t->test(
		'history: the commands list the state and print the history',
		static function () use ( $t, $apply ): void {
			$made  = $t->made();
			$files = array_column( $made['changed_files'], 'path' );
			$t->ok( $apply( $made, [ $files[0] ] ) );
			$run = $made['run']['run_id'];
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'get', $run ] );
			$t->same( 0, $code, $err );
			$t->contains( 'State: applied-in-part (1 of 2 files).', $err );
			$t->contains( "apply: success, 1 file, by admin\n    example-host/git-apply example-host-", $err );
			$t->contains( $files[1], $out );
			$t->same( 'applied-in-part', json_decode( $t->wp( [ 'codebox', 'artifacts', 'get', $run, '--format=json' ] )[1], true )['state'] );
			$t->contains( "$run,applied-in-part\n", $t->wp( [ 'codebox', 'artifacts', 'list', '--format=csv', '--fields=run_id,state' ] )[1] );
		}
	);
	$t->test(
		'history: the list of all bundles has the newest entries first, pages of them, and no start that ended',
		static function () use ( $t, $apply, $review ): void {
			[ $first, $second ] = [ $t->made(), $t->made() ];
			$t->ok( $apply( $first, [ $first['changed_files'][0]['path'] ] ) );
			$t->ok( $review( $second, 'approve', [ 'approved_files' => [ $second['changed_files'][1]['path'] ] ] ) );
			$t->ok( $review( $first, 'reject', [ 'reason' => 'not wanted' ] ) );
			$list = static fn( array $input ): array => $t->ok( $t->ability( 'list-artifact-history', $input ) );
			$rows = static fn( array $page ): array => array_map( static fn( array $row ): array => [ $row['run_id'], $row['event'], $row['status'] ], $page['history'] );
			$page = $list( [ 'per_page' => 4 ] );
			$t->same( [ [ $first['run']['run_id'], 'review', 'success' ], [ $second['run']['run_id'], 'apply', 'success' ] ], array_slice( $rows( $page ), 0, 2 ) );
			$applied = $page['history'][1];
			$t->same( [ [ $second['changed_files'][1]['path'] ], 'example-host/git-apply', 'admin' ], [ $applied['files'], $applied['adapter'], $applied['who']['login'] ] );
			$one = $list( [ 'per_page' => 1 ] );
			$t->same( [ 1, false, $one['history'][0]['seq'] ], [ count( $one['history'] ), $one['complete'], $one['before'] ] );
			$next = $list( [ 'per_page' => 3, 'before' => $one['before'] ] );
			$t->same( array_slice( $rows( $page ), 1, 2 ), array_slice( $rows( $next ), 0, 2 ) );
			$t->same( [ [], true ], [ $list( [ 'before' => 1 ] )['history'], $list( [ 'before' => 1 ] )['complete'] ] );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'artifacts', 'history', '--per-page=2', '--format=csv', '--fields=event,status,who,files,run_id' ] );
			$t->same( 0, $code, $err );
			$t->contains( "review,success,admin,0,{$first['run']['run_id']}\n", $out );
			$t->contains( 'Older entries follow: --before=', $err );
		}
	);
	$t->test(
		'history: of two starts and one end, the earlier start has no end',
		static function () use ( $t, $inspect, $apply, $events ): void {
			$made  = $t->made();
			$files = array_column( $made['changed_files'], 'path' );
			$start = ( new WPCodebox\AuditTrail( new WPCodebox\Host\Site( new WPCodebox\Host\InstalledCode() ) ) )->write(
				'apply-approved',
				[
					'status'         => 'started',
					'run_id'         => $made['run']['run_id'],
					'artifact_id'    => $made['artifact_id'],
					'approved_files' => [ $files[0] ],
				]
			);
			$t->ok( $apply( $made, [ $files[1] ] ) );
			$answer = $inspect( $made );
			$t->same( [ [ 'apply started', 'apply success' ], $start['seq'], [ $files[0] ] ], [ $events( $answer ), $answer['history'][0]['seq'], $answer['history'][0]['files'] ] );
			$rows = $t->ok( $t->ability( 'list-artifact-history', [ 'per_page' => 2 ] ) )['history'];
			$t->same( [ 'success', $start['seq'] ], [ $rows[0]['status'], $rows[1]['seq'] ] );
		}
	);
};
