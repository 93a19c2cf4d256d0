<?php
/**
 * Error codes in PHP. `cargo xtask generate` derives their table from the contracts crate.
 */

declare(strict_types=1);

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$t->test(
		'error codes of the stand-in extension have the same HTTP and exit status as in the Rust crate contracts',
		static function () use ( $t ): void {
			$t->true( count( ErrorCode::cases() ) > 40, 'the table of the contracts crate was not found' );
			require_once getenv( 'TEST_ROOT' ) . '/tests/wordpress/fake/exceptions.php';
			foreach ( \WPCodebox\Native\Exception::table() as $code => [ , $http, $exit ] ) {
				$row = ErrorCode::tryFrom( $code );
				$t->same( null === $row ? 'no such code' : [ $row->http_status(), $row->exit_status() ], [ $http, $exit ], $code );
			}
		}
	);
	$t->test(
		'the text of an unknown exception goes to the error log and not into the answer',
		static function () use ( $t ): void {
			$log     = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$failure = Failure::from( new RuntimeException( 'password hunter2' ) );
			ini_set( 'error_log', (string) $log );
			$t->same( 'wp_codebox_internal', $failure->error_code );
			$t->true( ! str_contains( (string) json_encode( [ $failure->to_array(), $failure->to_wp_error() ] ), 'hunter2' ), 'the text of the exception is in the answer' );
			$t->contains( 'hunter2', (string) file_get_contents( getenv( 'TEST_WORK' ) . '/expected.log' ) );
		}
	);
};
