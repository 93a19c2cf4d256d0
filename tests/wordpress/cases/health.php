<?php
/**
 * Site Health with an extension: the level and the axes that are not enforced.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$result = static function (): array {
		$tests = apply_filters( 'site_status_tests', [ 'direct' => [] ] );
		$test  = $tests['async']['wp_codebox_isolation'];
		return call_user_func( $test['async_direct_test'] );
	};
	$t->test(
		'no page waits for the isolation test',
		static function () use ( $t ): void {
			$tests = apply_filters( 'site_status_tests', [ 'direct' => [] ] );
			$t->same( [ 'wp_codebox_extension' ], array_keys( $tests['direct'] ) );
			$t->same( 'codebox-isolation', $tests['async']['wp_codebox_isolation']['test'] );
			$t->true( has_action( 'wp_ajax_health-check-codebox-isolation' ), 'nobody answers the browser' );
		}
	);
	$t->test(
		'the level and what is not enforced are shown, what is enforced is not',
		static function () use ( $t, $result ): void {
			$test = $result();
			$t->same( [ 'good', 'wp_codebox_isolation' ], [ $test['status'], $test['test'] ] );
			$t->contains( 'Isolation level: full.', $test['description'] );
			$t->contains( 'Landlock ABI', $test['description'] );
			// Which axes these are depends on the host's control groups.
			$t->same( 1, preg_match( '/(memory|cpu): best-effort\./', $test['description'] ), $test['description'] );
			$t->true( ! str_contains( $test['description'], 'files: ' ), 'an enforced axis is listed' );
		}
	);
	if ( '1' !== getenv( 'WP_CODEBOX_FAKE' ) ) {
		return;
	}
	foreach ( [
		'reduced' => [ 'recommended', 'files: not-enforced.' ],
		'none'    => [ 'critical', 'files: not-enforced.' ],
		'unknown' => [ 'critical', 'The runner is gone.' ],
	] as $level => [ $status, $text ] ) {
		$t->test(
			"level $level is $status",
			static function () use ( $t, $result, $level, $status, $text ): void {
				putenv( "WP_CODEBOX_FAKE_LEVEL=$level" );
				$test = $result();
				putenv( 'WP_CODEBOX_FAKE_LEVEL' );
				$t->same( $status, $test['status'] );
				$t->contains( $text, $test['description'] );
				$t->true( ! str_contains( $test['description'], '<b>' ), 'evidence is not escaped' );
			}
		);
	}
};
