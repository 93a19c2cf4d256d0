<?php
/**
 * Answers to a user with the run capability and without those to review and apply.
 */

declare(strict_types=1);

use WPCodebox\Host\HiddenPaths;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Extension;
use WPCodebox\Tests\Failed;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$roots = static fn(): array => array_filter( [ untrailingslashit( ABSPATH ), (string) realpath( ABSPATH ), WP_CONTENT_DIR, WP_PLUGIN_DIR, Extension::info()['state_dir'], Extension::info()['share_dir'] ?? '' ] );
	// Gives the editor of the test site the run capability only.
	$may   = static fn( array $caps, string $cap ): array => 'wp_codebox_run' === $cap ? [ 'edit_posts' ] : $caps;
	// Returns the strings of an answer or error that name a directory of this host; the keys are their paths in the answer.
	$named = static function ( mixed $answer ) use ( $roots ): array {
		if ( is_wp_error( $answer ) ) {
			$answer = [ 'messages' => $answer->get_error_messages(), 'data' => $answer->get_all_error_data() ];
		}
		$found = [];
		$walk  = static function ( mixed $value, string $at ) use ( &$walk, &$found, $roots ): void {
			if ( is_array( $value ) ) {
				foreach ( $value as $key => $inner ) {
					$walk( $inner, "$at/$key" );
				}
			} elseif ( is_string( $value ) && str_replace( $roots(), '', $value ) !== $value ) {
				$found[ $at ] = $value;
			}
		};
		$walk( $answer, '' );
		return $found;
	};
	$task  = [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ];
	// [ ability, input, whether its answer names directories to an administrator ]; the stand-in of the extension refuses groups.
	$asked = static function ( string $run_id ) use ( $t, $task ): array {
		return [
			'a run'                    => [ 'run-agent-task', $task, true ],
			'a batch'                  => [ 'run-agent-task-batch', [ 'tasks' => [ $task, [ 'plugin' => 'nope', 'goal' => 'x' ] ] ], 'native' === $t->phase ],
			'a fan-out'                => [ 'run-agent-task-fanout', [ 'workers' => [ [ 'id' => 'one' ] + $task ] ], 'native' === $t->phase ],
			'a refused mount'          => [ 'run-agent-task', [ 'goal' => 'x', 'mounts' => [ [ 'source' => WP_CONTENT_DIR, 'target' => '/workspace/x' ] ] ], false ],
			'the list of runs'         => [ 'list-runs', [], false ],
			'a past run'               => [ 'get-run', [ 'run_id' => $run_id ], true ],
			'the events of a past run' => [ 'list-run-events', [ 'run_id' => $run_id ], false ],
			'cancelling a past run'    => [ 'cancel-run', [ 'run_id' => $run_id ], false ],
			'an unknown run'           => [ 'get-run', [ 'run_id' => 'run_' . str_repeat( '0', 32 ) ], false ],
		];
	};

	$t->test(
		'run-only: answers and errors name no directory of this host, unless the user may review',
		static function () use ( $t, $may, $named, $asked, $task ): void {
			$t->made( 'nothing' );
			$seen = [];
			foreach ( [ 'editor', 'administrator' ] as $role ) {
				$seen[ $role ] = $t->filtered(
					'map_meta_cap',
					$may,
					static function () use ( $t, $role, $named, $asked, $task ): array {
						$t->as( $role );
						$made = $t->ok( $t->ability( 'run-agent-task', $task ) );
						$t->same( 'succeeded', $made['run']['outcome'], $role );
						$t->contains( '/wordpress/wp-content/plugins/sample/', $made['changed_files'][0]['path'] );
						$answers = [];
						foreach ( $asked( $made['run']['run_id'] ) as $what => [ $ability, $input ] ) {
							$answer = $t->ability( $ability, $input );
							$t->true( ! is_wp_error( $answer ) || 'ability_invalid_permissions' !== $answer->get_error_code(), "$role: $what is refused" );
							$answers[ $what ] = $named( $answer );
						}
						return $answers;
					}
				);
			}
			foreach ( $asked( 'any' ) as $what => [ , , $shown ] ) {
				$t->same( [], $seen['editor'][ $what ], $what );
				$t->same( $shown, [] !== $seen['administrator'][ $what ], "positive control: $what" );
			}
		}
	);
	if ( 'fake' === $t->phase ) {
		$t->test(
			'run-only: an error message that names a directory is shown only to a user who may review',
			static function () use ( $t, $may, $named ): void {
				$state = (string) getenv( 'WP_CODEBOX_FAKE_STATE' );
				try {
					putenv( 'WP_CODEBOX_FAKE_STATE=' . WP_CONTENT_DIR );
					foreach ( [ 'editor' => false, 'administrator' => true ] as $role => $shown ) {
						$t->as( $role );
						$error = $t->filtered( 'map_meta_cap', $may, static fn(): mixed => $t->ability( 'list-runs' ) );
						$t->error( 'wp_codebox_state_dir_invalid', 503, $error );
						$t->same( $shown, [] !== $named( $error ), $error->get_error_message() );
					}
				} finally {
					putenv( "WP_CODEBOX_FAKE_STATE=$state" );
				}
			}
		);
		$t->test(
			'run-only: host paths become placeholders, symbolic links are resolved, and guest paths stay',
			static function () use ( $t ): void {
				$hide  = static fn( array $rows ): array => ( new HiddenPaths( new Site( new InstalledCode() ) ) )->hide( $rows );
				$state = (string) getenv( 'WP_CODEBOX_FAKE_STATE' );
				$link  = getenv( 'TEST_WORK' ) . '/state-link';
				putenv( 'WP_CODEBOX_FAKE_MOUNT_ROOTS=/workspace' );
				$t->same( [ '<plugins>/sample/sample.php', '/workspace/sample.php' ], $hide( [ WP_PLUGIN_DIR . '/sample/sample.php', '/workspace/sample.php' ] ) );
				try {
					symlink( $state, $link );
					putenv( "WP_CODEBOX_FAKE_STATE=$link" );
					$t->same( [ '<state>/a', '<state>/b' ], $hide( [ "$link/a", realpath( $state ) . '/b' ] ) );
				} finally {
					putenv( "WP_CODEBOX_FAKE_STATE=$state" );
					unlink( $link );
				}
			}
		);
	}
	$t->test(
		'run-only: only whole directory names are hidden, in messages, hints and error data',
		static function () use ( $t, $named ): void {
			$paths = new HiddenPaths( new Site( new InstalledCode() ) );
			$state = (string) Extension::info()['state_dir'];
			$error = new WP_Error( 'one', "The directory $state/sites is not writable; see \"$state\".", [ 'status' => 503, 'hints' => [ "chown $state, then retry" ] ] );
			$error->add( 'two', 'From ' . ABSPATH . 'wp-config.php.' );
			$hidden = $paths->hide( $error );
			$t->same( [ [], 503 ], [ $named( $hidden ), $hidden->get_error_data( 'one' )['status'] ] );
			$t->same( [ 'The directory <state>/sites is not writable; see "<state>".', 'From <site>/wp-config.php.' ], $hidden->get_error_messages() );
			$kept = [
				'message'       => "{$state}2/x and {$state}-old and /mnt$state stay, and so does /wordpress/wp-content",
				'goal'          => "Look at $state",
				'changed_files' => [ [ 'path' => "$state/x" ] ],
				'events'        => [ [ 'data' => [ 'text' => "$state/x" ] ] ],
				'response'      => [ 'text' => "$state/x" ],
				'checks'        => [ [ 'output' => "$state/x" ] ],
				'count'         => 3,
			];
			$t->same( $kept, $paths->hide( $kept ) );
		}
	);
};
