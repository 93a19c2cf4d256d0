<?php
/**
 * Tasks that continue an earlier bundle.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$base  = '/wordpress/wp-content/plugins/sample/';
	$task  = static fn( array $of, string $what = 'write later.txt' ): array => [ 'goal' => 'Go on', 'plugin' => 'sample', 'agent_command' => "php agent.php $what", 'follow_up_of' => $of ];
	$run   = static fn( array $of, string $what = 'write later.txt' ): mixed => $t->ability( 'run-agent-task', $task( $of, $what ) );
	$paths = static fn( array $made ): array => array_column( $made['changed_files'], 'path' );
	$read  = static fn( array $made, string $member ): array => (array) json_decode( (string) file_get_contents( $made['artifacts'] . '/' . $member ), true );

	$t->test(
		'follow-up: a user with the run capability only continues own bundles, and a reviewer every bundle',
		static function () use ( $t, $run ): void {
			$may   = static fn( array $caps, string $cap ): array => 'wp_codebox_run' === $cap ? [ 'edit_posts' ] : $caps;
			$admin = $t->made( 'nothing' );
			$own   = $t->filtered(
				'map_meta_cap',
				$may,
				static function () use ( $t, $run, $admin ): array {
					$t->as( 'editor' );
					$own     = $t->ok( $t->ability( 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
					$unknown = $run( [ 'run_id' => 'run_' . str_repeat( '0', 32 ) ] );
					$t->error( 'wp_codebox_artifact_not_found', 404, $unknown );
					foreach ( [ [ 'run_id' => $admin['run']['run_id'] ], [ 'artifact_id' => $admin['run']['run_id'] ], [ 'artifact_id' => $admin['artifact_id'] ] ] as $of ) {
						$refused = $run( $of );
						$t->error( 'wp_codebox_artifact_not_found', 404, $refused );
						$t->same( $unknown->get_error_data(), $refused->get_error_data() );
					}
					// A prefix would tell which bundles of other users exist.
					$t->error( 'wp_codebox_artifact_not_found', 404, $run( [ 'artifact_id' => substr( $own['run']['run_id'], 0, 20 ) ] ) );
					$t->same( 'succeeded', $t->ok( $run( [ 'run_id' => $own['run']['run_id'] ] ) )['run']['outcome'], 'positive control' );
					return $own;
				}
			);
			$t->as( 'administrator' );
			$t->same( 'succeeded', $t->ok( $run( [ 'artifact_id' => substr( $own['run']['run_id'], 0, 20 ) ] ) )['run']['outcome'] );
		}
	);
	$t->test(
		'follow-up: comments beyond the schema are refused, and the request names the run of the bundle',
		static function () use ( $t, $run ): void {
			$made = $t->made();
			$of   = [ 'artifact_id' => $made['run']['run_id'] ];
			$t->same( 'ability_invalid_input', $run( $of + [ 'site' => 'other' ] )->get_error_code() );
			$t->same( 'ability_invalid_input', $run( $of + [ 'comments' => [ [ 'path' => 'sample.php' ] ] ] )->get_error_code() );
			$t->same( 'ability_invalid_input', $run( $of + [ 'comments' => array_fill( 0, 101, [ 'body' => 'x' ] ) ] )->get_error_code() );
			$t->same( 'succeeded', $t->ok( $run( $of + [ 'comments' => array_fill( 0, 100, [ 'body' => 'x' ] ) ] ) )['run']['outcome'], 'positive control' );
		}
	);
	if ( 'native' !== $t->phase ) {
		return;
	}
	$t->test(
		'follow-up: the new bundle contains the earlier change, what is new since, and the comments',
		static function () use ( $t, $run, $paths, $read, $base ): void {
			$made = $t->made();
			$next = $t->ok( $run( [ 'artifact_id' => $made['run']['run_id'], 'comments' => [ [ 'path' => 'sample.php', 'line' => 2, 'body' => 'Write a note.' ] ] ] ) );
			$t->same( [ $base . 'inc/more.php', $base . 'later.txt', $base . 'sample.php' ], $paths( $next ) );
			$record = $read( $next, 'files/follow-up.json' );
			$t->same( [ $made['artifact_id'], $made['run']['run_id'], [ $made['run']['run_id'] ] ], [ $record['artifactId'], $record['runId'], $record['chain'] ] );
			$t->same( [ $base . 'later.txt' ], array_column( $record['changedFiles'], 'path' ) );
			$context = $read( $next, 'metadata.json' )['task']['context']['follow_up'];
			$t->same( [ [ 'path' => $base . 'sample.php', 'line' => 2, 'body' => 'Write a note.' ] ], $context['comments'] );
			$t->contains( 'Untrusted text', $context['notice'] );
			$t->same( true, $t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $next['run']['run_id'] ] ) )['verification']['valid'] );
			$again = $t->ok( $t->ability( 'replay-artifact', [ 'artifact_id' => $next['run']['run_id'] ] ) );
			$t->same( [ true, [] ], [ $again['identical'], $again['differences'] ], (string) json_encode( $again ) );
		}
	);
	$t->test(
		'follow-up: a changed file on the site is refused with the list of files, and no run starts',
		static function () use ( $t, $run, $base ): void {
			$made = $t->made();
			file_put_contents( WP_PLUGIN_DIR . '/sample/sample.php', "\n// edited by hand\n", FILE_APPEND );
			$refused = $run( [ 'run_id' => $made['run']['run_id'] ] );
			$t->error( 'wp_codebox_base_changed', 409, $refused );
			$t->same( [ $base . 'sample.php' ], $refused->get_error_data()['files'] );
			$t->made( 'nothing' );
			$t->same( 'succeeded', $t->ok( $run( [ 'run_id' => $made['run']['run_id'] ] ) )['run']['outcome'], 'positive control' );
		}
	);
};
