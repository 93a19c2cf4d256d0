<?php
/**
 * Codes that PHP raises, and the table of the contracts crate.
 */

declare(strict_types=1);

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$t->test(
		'every code has the HTTP and exit status of the contracts crate',
		static function () use ( $t ): void {
			$table = [];
			$rust  = (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/ext/crates/contracts/src/code.rs' );
			preg_match_all( '/= "([a-z_-]+)", [A-Za-z]+, (\d+), (\d+);/', $rust, $rows, PREG_SET_ORDER );
			foreach ( $rows as [ , $code, $http, $exit ] ) {
				$table[ $code ] = [ (int) $http, (int) $exit ];
			}
			$t->true( count( $table ) > 40, 'the table of the contracts crate was not found' );
			foreach ( ErrorCode::cases() as $code ) {
				$t->same( $table[ $code->value ] ?? 'no such code', [ $code->http_status(), $code->exit_status() ], $code->value );
			}
			require_once getenv( 'TEST_ROOT' ) . '/tests/wordpress/fake/exceptions.php';
			foreach ( \WPCodebox\Native\Exception::table() as $code => [ , $http, $exit ] ) {
				$t->same( $table[ $code ] ?? 'no such code', [ $http, $exit ], "stand-in: $code" );
			}
		}
	);
	$t->test(
		'an exception that is not ours keeps its text to itself',
		static function () use ( $t ): void {
			$log     = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$failure = Failure::from( new RuntimeException( 'password hunter2' ) );
			ini_set( 'error_log', (string) $log );
			$t->same( 'wp_codebox_internal', $failure->error_code );
			$t->true( ! str_contains( (string) json_encode( [ $failure->to_array(), $failure->to_wp_error() ] ), 'hunter2' ), 'the text got out' );
			$t->contains( 'hunter2', (string) file_get_contents( getenv( 'TEST_WORK' ) . '/expected.log' ) );
		}
	);
};
