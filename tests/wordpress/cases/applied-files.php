<?php
/**
 * What is applied of a bundle, from audit records of every kind.
 */

declare(strict_types=1);

use WPCodebox\Apply\AppliedFiles;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	[ $a, $b ] = [ '/wordpress/wp-content/plugins/sample/a.php', '/wordpress/wp-content/plugins/sample/inc/a.php' ];
	$apply     = static fn( array $files, string $change = 'apply_1' ): array => [ 'event' => 'apply', 'status' => 'success', 'adapter' => 'codebox-direct', 'result' => [ 'audit_reference' => $change, 'applied_files' => $files ] ];
	$rollback  = static fn( ?array $files, string $status = 'success', string $change = 'apply_1' ): array => [ 'event' => 'rollback', 'status' => $status, 'change' => $change ] + ( null === $files ? [] : [ 'result' => [ 'files' => $files ] ] );
	$after     = static function ( array ...$records ): array {
		$files = new AppliedFiles();
		array_map( [ $files, 'follow' ], $records );
		return [ $files->state( 2, true ), array_column( $files->files(), 'path' ) ];
	};

	$t->test(
		'history: a roll back removes the files that it restored, and with the last one the bundle is rolled back',
		static function () use ( $t, $after, $apply, $rollback, $a, $b ): void {
			$t->same( [ 'applied', [ $a, $b ] ], $after( $apply( [ $a, $b ] ) ) );
			$t->same( [ 'applied-in-part', [ $a ] ], $after( $apply( [ $a, $b ] ), $rollback( [ 'inc/a.php' ], 'failure' ) ) );
			$t->same( [ 'rolled-back', [] ], $after( $apply( [ $a, $b ] ), $rollback( [ 'a.php', 'inc/a.php' ] ) ) );
			$t->same( [ 'rolled-back', [] ], $after( $apply( [ $a, $b ] ), $rollback( null ) ), 'a record without names' );
			$t->same( [ 'applied', [ $a, $b ] ], $after( $apply( [ $a, $b ] ), $rollback( null, 'failure' ) ), 'a roll back that restored nothing' );
			$t->same( [ 'applied-in-part', [ $a ] ], $after( $apply( [ $a ] ), $apply( [ $b ], 'apply_2' ), $rollback( null, 'success', 'apply_2' ) ), 'the second of two changes' );
			$t->same( [ 'applied', [ $a, $b ] ], $after( $apply( [ $a, $b ] ), $rollback( [ 'a.php' ] ), $apply( [ $a, $b ], 'apply_2' ) ), 'applied again' );
		}
	);
	$t->test(
		'history: a file with the same end of its name is not taken for the restored one',
		static fn() => $t->same( [ 'applied-in-part', [ '/x/ba.php' ] ], $after( $apply( [ $a, '/x/ba.php' ] ), $rollback( [ 'a.php' ] ) ) )
	);
	$t->test(
		'history: an apply after which the site got worse counts as rolled back, unless files could not be restored',
		static function () use ( $t, $after ): void {
			$failed = [ 'event' => 'apply', 'status' => 'failure', 'adapter' => 'codebox-direct', 'result' => [ 'status' => 'failed', 'health' => [ 'status' => 'worse' ] ] ];
			$t->same( [ 'rolled-back', [] ], $after( $failed ) );
			$failed['result']['conflicts'] = [ [ 'path' => 'a.php' ] ];
			$t->same( [ 'open', [] ], $after( $failed ) );
			$t->same( [ 'open', [] ], $after( [ 'event' => 'apply', 'status' => 'failure', 'error' => [ 'code' => 'wp_codebox_apply_conflict' ] ] ) );
		}
	);
	$t->test(
		'history: the last decision wins while nothing is applied, and an import reopens a discarded bundle',
		static function () use ( $t, $after, $apply, $rollback, $a, $b ): void {
			$reject = [ 'event' => 'review', 'action' => 'reject', 'status' => 'success' ];
			$is     = static fn( string $event ): array => [ 'event' => $event, 'status' => 'success' ];
			$t->same( [ 'rejected', [] ], $after( $reject ) );
			$t->same( [ 'applied', [ $a, $b ] ], $after( $reject, $apply( [ $a, $b ] ) ) );
			$t->same( [ 'applied', [ $a, $b ] ], $after( $apply( [ $a, $b ] ), $reject ) );
			$t->same( [ 'rejected', [] ], $after( $apply( [ $a ] ), $rollback( null ), $reject ) );
			$t->same( [ 'open', [] ], $after( [ 'status' => 'failure' ] + $reject ), 'a rejection that failed' );
			$t->same( [ 'discarded', [] ], $after( $is( 'discard' ) ) );
			$t->same( [ 'open', [] ], $after( $is( 'discard' ), $is( 'import' ) ) );
			$t->same( [ 'applied-in-part', [ $a ] ], $after( $apply( [ $a ] ), $is( 'discard' ), $is( 'import' ) ) );
		}
	);
	$t->test(
		'history: a log that was not searched completely gives no state but what its newest records say',
		static function () use ( $t, $apply, $a ): void {
			$files = new AppliedFiles();
			$t->same( [ null, 'open' ], [ $files->state( 2, false ), $files->state( 2, true ) ] );
			$files->follow( $apply( [ $a ] ) );
			$t->same( 'applied-in-part', $files->state( 2, false ) );
		}
	);
};
