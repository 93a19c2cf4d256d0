<?php
/**
 * Abilities that list, get, inspect and discard artifact bundles.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$run = static function () use ( $t ): array {
		$t->as( 'administrator' );
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
		return $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
	};

	$t->test(
		'a bundle can be listed, read by run id or prefix, and verified',
		static function () use ( $t, $run ): void {
			$made = $run();
			$id   = $made['run']['run_id'];
			$list = $t->ok( $t->ability( 'list-artifacts' ) );
			$t->same( [ true, 'wp-codebox/artifact-list/v1' ], [ $list['success'], $list['schema'] ] );
			$t->same( [ $id, $made['artifact_id'], $made['artifact_id'] ], [ $list['artifacts'][0]['run_id'], $list['artifacts'][0]['artifact_id'], $list['artifacts'][0]['id'] ] );
			$t->same( 'succeeded', $list['artifacts'][0]['outcome'] );
			foreach ( [ $id, substr( $id, 0, 14 ) ] as $reference ) {
				$got = $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $reference ] ) );
				$t->same( [ 'wp-codebox/artifact/v1', $id, $made['artifact_id'] ], [ $got['schema'], $got['artifact']['run_id'], $got['artifact']['manifest']['id'] ] );
			}
			$seen = $t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $id ] ) );
			$t->same( [ 'wp-codebox/artifact-inspection/v1', true, [], 'signed-by-this-host' ], [ $seen['schema'], $seen['verification']['valid'], $seen['verification']['violations'], $seen['verification']['signature']['status'] ] );
			$t->same( realpath( $seen['artifact']['directory'] ), $seen['verification']['bundleDirectory'] );
			$t->same( $made['run']['manifest_sha256'], $seen['manifest_sha256'] );
			$t->same( hash_file( 'sha256', $made['artifacts'] . '/manifest.json' ), $seen['manifest_sha256'] );
		}
	);
	$t->test(
		'list-artifacts returns different bundles on different pages',
		static function () use ( $t, $run ): void {
			$run();
			$run();
			$one = $t->ok( $t->ability( 'list-artifacts', [ 'per_page' => 1 ] ) );
			$two = $t->ok( $t->ability( 'list-artifacts', [ 'per_page' => 1, 'page' => 2 ] ) );
			$t->same( [ 1, 1 ], [ count( $one['artifacts'] ), count( $two['artifacts'] ) ] );
			$t->true( $one['artifacts'][0]['run_id'] !== $two['artifacts'][0]['run_id'] && $one['total'] >= 2, 'both pages list the same bundle' );
			$t->same( [], $t->ok( $t->ability( 'list-artifacts', [ 'page' => 100000 ] ) )['artifacts'] );
		}
	);
	$t->test(
		'two bundles with equal changes share an artifact id, and a request by that id is ambiguous',
		static function () use ( $t, $run ): void {
			[ $a, $b ] = [ $run(), $run() ];
			$t->same( $a['artifact_id'], $b['artifact_id'] );
			$t->error( 'wp_codebox_artifact_ambiguous', 409, $t->ability( 'get-artifact', [ 'artifact_id' => $a['artifact_id'] ] ) );
		}
	);
	foreach ( [ 'get-artifact', 'inspect-artifact', 'discard-artifact' ] as $name ) {
		$t->test(
			"$name without an id or with an unknown id is refused",
			static function () use ( $t, $name ): void {
				$t->as( 'administrator' );
				foreach ( [ null, [], [ 'artifact_id' => '' ], [ 'artifact_id' => ' ' ] ] as $input ) {
					$t->error( 'wp_codebox_artifact_id_missing', 400, $t->ability( $name, $input ) );
				}
				foreach ( [ 'run_' . str_repeat( '0', 32 ), '../../etc', 'artifact-bundle-sha256-' . str_repeat( '0', 64 ) ] as $id ) {
					$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( $name, [ 'artifact_id' => $id ] ) );
				}
			}
		);
	}
	$t->test(
		'a tampered bundle fails verification and can be discarded',
		static function () use ( $t, $run ): void {
			$made = $run();
			$id   = [ 'artifact_id' => $made['run']['run_id'] ];
			file_put_contents( $made['paths']['patch'], str_replace( 'hello', 'hacked', (string) file_get_contents( $made['paths']['patch'] ) ) );
			$seen = $t->ok( $t->ability( 'inspect-artifact', $id ) );
			$t->same( false, $seen['verification']['valid'] );
			$t->true( in_array( 'files/patch.diff', array_map( static fn( array $v ): string => $v['file'] ?? $v['path'], $seen['verification']['violations'] ), true ), (string) json_encode( $seen['verification']['violations'] ) );
			$gone = $t->ok( $t->ability( 'discard-artifact', $id ) );
			$t->same( [ 'wp-codebox/artifact/v1', true, $id['artifact_id'] ], [ $gone['schema'], $gone['discarded'], $gone['run_id'] ] );
			$t->same( false, is_dir( $made['artifacts'] ) );
			$t->error( 'wp_codebox_artifact_not_found', 404, $t->ability( 'discard-artifact', $id ) );
		}
	);
	$t->test(
		'a bundle without a readable manifest is listed and can be discarded',
		static function () use ( $t, $run ): void {
			$made = $run();
			file_put_contents( $made['artifacts'] . '/manifest.json', '{' );
			// A bundle without a date is listed last, and other cases leave many bundles.
			$rows = [];
			for ( $page = 1; ! isset( $rows[ $made['run']['run_id'] ] ) && $page < 100; $page++ ) {
				$rows = array_column( $t->ok( $t->ability( 'list-artifacts', [ 'page' => $page ] ) )['artifacts'], null, 'run_id' );
			}
			$t->same( false, $rows[ $made['run']['run_id'] ]['valid_manifest'] );
			$t->same( true, $t->ok( $t->ability( 'discard-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) )['discarded'] );
		}
	);
};
