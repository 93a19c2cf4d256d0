<?php
/**
 * Which caller reaches which object: each ability, each field of its input that names an object, each kind of caller, and the objects of the
 * caller, of another user and of another site.
 */

declare(strict_types=1);

use WPCodebox\Browser\SessionAssets;
use WPCodebox\Settings;
use WPCodebox\Tests\BrowserAssets;
use WPCodebox\Tests\Harness;

require_once dirname( __DIR__ ) . '/browser.php';

return static function ( Harness $t ): void {
	$task = [ 'goal' => 'Go on', 'plugin' => 'sample', 'agent_command' => 'php agent.php nothing' ];
	$page = [ 'files' => [ [ 'path' => 'plugins/sample/x.txt', 'content' => 'x' ] ] ];
	// Fields of the input that name an object, by ability: kind of the object, and the input with its name. Kinds:
	//   run, bundle   objects of the caller, or any for a reviewer
	//   session       objects of the caller only
	//   any bundle    all bundles of the site; the ability itself needs a capability to review or apply
	//   echo          returned as given, or passed to a plugin of the site; finds nothing here
	//   path          a directory or file that the caller may mount
	$bundle  = static fn( string $field ): array => [ $field => [ 'any bundle', static fn( string $id ): array => [ $field => $id ] ] ];
	$follow  = static fn( callable $input ): array => [ 'follow_up_of' => [ 'bundle', static fn( string $id ): array => $input( [ 'follow_up_of' => [ 'artifact_id' => $id ] ] + $task ) ] ];
	$root    = static fn( array $more = [] ): array => [ 'roots' => [ 'bundle', static fn( string $id ): array => $more + [ 'goal' => 'Look', 'roots' => [ [ 'kind' => 'bundle', 'slug' => $id ] ] ] ], 'sandbox_session_id' => [ 'session', static fn( array $site ): array => $more + [ 'goal' => 'Look', 'sandbox_session_id' => $site['session_id'] ] ] ];
	$site    = [
		'contained_site' => [ 'session', static fn( array $site ): array => [ 'contained_site' => $site ] ],
		'site_id'        => [ 'session', static fn( array $site ): array => [ 'site_id' => $site['site_id'], 'source_digest' => $site['source_digest'] ] ],
		'session_id'     => [ 'session', static fn( array $site ): array => [ 'session_id' => $site['session_id'], 'site_id' => $site['site_id'] ] ],
		'cache_key'      => [ 'session', static fn( array $site ): array => $site['recovery']['input'] ],
		'preview_lease'  => [ 'session', static fn( array $site ): array => [ 'contained_site' => $site, 'preview_lease' => [ 'session_id' => $site['session_id'] ] ] ],
	];
	$echo    = static fn( string ...$fields ): array => array_fill_keys( $fields, [ 'echo' ] );
	$sync    = $echo( 'contained_site', 'site_id' );
	$run     = [ 'run_id' => [ 'run', static fn( string $id ): array => [ 'run_id' => $id ] ] ];
	$correlated = $echo( 'parent_request', 'sandbox_session_id', 'session_id' );
	$roads   = [
		'apply-approved-artifact'                         => $bundle( 'artifact_id' ),
		'apply-artifact-preflight'                        => $bundle( 'artifact_id' ),
		'apply-browser-contained-site-plan'               => $site,
		'boot-browser-contained-site-session'             => $site,
		'browser-connector-request'                       => $echo( 'session' ),
		'browser-contained-site-sync-apply'               => $sync,
		'browser-contained-site-sync-apply-plan-generate' => $sync,
		'browser-contained-site-sync-apply-plan-validate' => $sync,
		'browser-contained-site-sync-delegation'          => $sync,
		'browser-contained-site-sync-export'              => $sync,
		'browser-contained-site-sync-manifest'            => $sync,
		'browser-contained-site-sync-source-connect'      => $sync,
		'cancel-run'                                      => $run,
		'create-browser-contained-site-session'           => $root(),
		'create-browser-materializer-contract'            => $root(),
		'create-browser-playground-session'               => $root(),
		'create-browser-task-contract'                    => $root(),
		'destroy-browser-contained-site-session'          => $site,
		'discard-artifact'                                => $bundle( 'artifact_id' ),
		'download-approved-files'                         => $bundle( 'artifact_id' ),
		'execute-browser-provider-request'                => $echo( 'sandbox_session_id', 'session_id' ),
		'export-artifact-bundle'                          => $bundle( 'artifact_id' ),
		'export-browser-contained-site'                   => $site,
		'get-artifact'                                    => $bundle( 'artifact_id' ),
		'get-artifact-diff'                               => $bundle( 'artifact_id' ),
		'get-browser-contained-site-status'               => $site,
		'get-run'                                         => $run,
		'hydrate-browser-blueprint-ref'                   => [
			'ref'       => [ 'session', static fn( array $site ): array => [ 'ref' => $site['blueprint_ref']['ref'] ] ],
			'token'     => [ 'session', static fn( array $site ): array => [ 'token' => $site['blueprint_ref']['token'] ] ],
			'cache_key' => [ 'session', static fn( array $site ): array => [ 'cache_key' => $site['site_id'], 'input_hash' => $site['source_digest']['value'] ] ],
		],
		'import-artifact-bundle'                          => [ 'source_bundle_path' => [ 'path' ], 'source_manifest_path' => [ 'path' ] ],
		'inspect-artifact'                                => $bundle( 'artifact_id' ),
		'list-run-events'                                 => $run,
		'open-browser-contained-site'                     => $site,
		'open-or-create-browser-contained-site'           => $root( [ 'mode' => 'open-or-create' ] ) + array_map( static fn( array $row ): array => [ $row[0], static fn( array $site ): array => [ 'mode' => 'open-only', 'goal' => 'Look' ] + $row[1]( $site ) ], array_diff_key( $site, [ 'session_id' => 1 ] ) ),
		'persist-browser-artifact'                        => [
			'session_id' => [ 'session', static fn( array $site ): array => $page + [ 'session_id' => $site['session_id'] ] ],
			'session'    => [ 'session', static fn( array $site ): array => $page + [ 'session' => [ 'id' => $site['session_id'] ] ] ],
		],
		'plan-browser-contained-site-apply'               => $site,
		'preview-boot-ref'                                => $site,
		'preview-reuse-decision'                          => $site,
		'reimport-artifact-bundle'                        => [ 'source_bundle_path' => [ 'path' ], 'source_manifest_path' => [ 'path' ] ] + $echo( 'artifact_id', 'artifact_ref', 'artifact_result' ),
		'replay-artifact'                                 => [
			'artifact_id'   => [ 'bundle', static fn( string $id ): array => [ 'artifact_id' => $id ] ],
			// The replay of a bundle that the caller may see, by another user.
			'replay_run_id' => [ 'replay', static fn( string $id, string $of ): array => [ 'artifact_id' => $of, 'replay_run_id' => $id ] ],
		],
		'request-host-delegation'                         => $echo( 'sandbox_session_id' ),
		'resolve-runtime-requirements'                    => $echo( 'sandbox_session_id' ),
		'review-artifact'                                 => [ 'artifact_id' => [ 'any bundle', static fn( string $id ): array => [ 'artifact_id' => $id, 'action' => 'reject' ] ] ],
		'rollback-artifact'                               => $bundle( 'artifact_id' ),
		'run-agent-task'                                  => $correlated + $follow( static fn( array $one ): array => $one ),
		'run-agent-task-batch'                            => $correlated + $follow( static fn( array $one ): array => [ 'tasks' => [ $one ] ] ),
		'run-agent-task-fanout'                           => $correlated + $follow( static fn( array $one ): array => [ 'workers' => [ [ 'id' => 'one' ] + $one ] ] ),
		// `options`, `input`, `task` and `workflow` take the fields of run-agent-task without naming them in their schema.
		'run-runtime-task'                                => $echo( 'sandbox_session_id' ) + $follow( static fn( array $one ): array => [ 'task' => 'Go on', 'target_id' => 'wp-codebox/host-playground', 'input' => array_diff_key( $one, [ 'goal' => 1 ] ) ] ),
		'runner-workspace-capture'                        => $echo( 'workspace', 'workspace_handle', 'workspace_path' ),
		'runner-workspace-command'                        => $echo( 'workspace', 'workspace_handle', 'workspace_path' ),
		'runner-workspace-publish'                        => $echo( 'workspace', 'workspace_handle', 'workspace_path' ),
		'snapshot-browser-contained-site'                 => $site,
		'stage-artifact-apply'                            => $bundle( 'artifact_id' ) + $echo( 'user_id' ),
	];

	$cases = static function ( string ...$kinds ) use ( $roads ): array {
		$found = [];
		foreach ( $roads as $ability => $fields ) {
			foreach ( $fields as $field => $row ) {
				if ( in_array( $row[0], $kinds, true ) ) {
					$found[ "$ability, $field" ] = [ $ability, $row[1] ];
				}
			}
		}
		return $found;
	};
	$grants = [ 'walk-owner' => [ 'wp_codebox_run' ], 'walk-other' => [ 'wp_codebox_run' ], 'walk-reviewer' => [ 'wp_codebox_run', 'wp_codebox_review' ], 'walk-key' => [], 'walk-nobody' => [] ];
	$user   = static function ( string $login ) use ( $t ): void {
		if ( false === get_user_by( 'login', $login ) && str_starts_with( $login, 'walk-' ) ) {
			wp_insert_user( [ 'user_login' => $login, 'user_pass' => wp_generate_password(), 'user_email' => "$login@example.org", 'role' => 'subscriber' ] );
		}
		$t->as( $login );
	};
	/** Calls the body while each user of the walk has the capabilities of $grants, and an application password of one has every scope. */
	$granted = static function ( callable $body ) use ( $t, $grants, $user ): mixed {
		$map = static function ( array $caps, string $cap, int $id ) use ( $grants ): array {
			$login = (string) get_userdata( $id )?->user_login;
			return isset( $grants[ $login ] ) && str_starts_with( $cap, 'wp_codebox_' ) ? ( in_array( $cap, $grants[ $login ], true ) ? [ 'exist' ] : [ 'do_not_allow' ] ) : $caps;
		};
		$user( 'walk-key' );
		add_filter( 'wp_is_application_passwords_available', '__return_true' );
		$uuid = WP_Application_Passwords::create_new_application_password( get_current_user_id(), [ 'name' => 'walk ' . wp_rand() ] )[1]['uuid'];
		update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request', 'artifact:write', 'browser-session:create' ] ] );
		// Only the contract of the engine is replaced, so that no runtime files are needed. Code and bundles are read from this site.
		$assets = static fn( SessionAssets $own ): SessionAssets => new class( $own ) implements SessionAssets {
			public function __construct( private readonly SessionAssets $own ) {}
			public function contract( string $scope, string $session_id ): array {
				return ( new BrowserAssets() )->contract( $scope, $session_id );
			}
			public function roots( array $roots, string $session_id ): array {
				return $this->own->roots( $roots, $session_id );
			}
		};
		try {
			return $t->filtered( 'wp_codebox_browser_session_assets', $assets, static fn(): mixed => $t->filtered( 'map_meta_cap', $map, static fn(): mixed => $body( $uuid ) ) );
		} finally {
			remove_filter( 'wp_is_application_passwords_available', '__return_true' );
			delete_site_option( Settings::TRUSTED_CALLERS );
			$GLOBALS['wp_rest_application_password_uuid'] = null;
		}
	};
	/** Calls an ability as a user; `walk-key` is authenticated by its application password. */
	$ask  = static function ( string $login, string $uuid, string $ability, array $input ) use ( $t, $user ): mixed {
		$user( $login );
		$GLOBALS['wp_rest_application_password_uuid'] = 'walk-key' === $login ? $uuid : null;
		try {
			return $t->ability( $ability, $input );
		} finally {
			$GLOBALS['wp_rest_application_password_uuid'] = null;
		}
	};
	/** Returns codes, messages and reasons of an answer, without the ids that the caller gave. */
	$said = static function ( mixed $answer, string ...$ids ): array {
		if ( is_wp_error( $answer ) ) {
			$facts = [ $answer->get_error_code(), $answer->get_error_message(), $answer->get_error_data() ];
		} else {
			$rows  = $answer['runs'] ?? $answer['workers'] ?? $answer['results'] ?? [];
			$facts = [ $answer['success'] ?? null, $answer['resolution']['reason'] ?? null, $answer['error']['code'] ?? null, array_map( static fn( array $row ): mixed => $row['error'] ?? null, array_values( array_filter( $rows, 'is_array' ) ) ) ];
		}
		return json_decode( str_replace( $ids, '<id>', (string) json_encode( $facts ) ), true );
	};
	/** Makes a run with a bundle, and a session in a browser, of the walk's owner. */
	$owned = static function ( string $uuid ) use ( $t, $ask, $user ): array {
		$t->made( 'nothing' );
		$made = $t->ok( $ask( 'walk-owner', $uuid, 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
		$site = $t->ok( $ask( 'walk-owner', $uuid, 'create-browser-contained-site-session', [ 'goal' => 'Look', 'roots' => [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ], 'landing_page' => '/' . wp_rand() . '/' ] ) )['contained_site'];
		return [ $made['run']['run_id'], $made['artifact_id'], $site ];
	};
	$no_run    = 'run_' . str_repeat( '0', 32 );
	$no_bundle = 'artifact-bundle-sha256-' . str_repeat( '0', 64 );
	$groups    = 'native' === $t->phase ? [] : [ 'run-agent-task-batch', 'run-agent-task-fanout' ];

	if ( is_multisite() ) {
		// A site of its own: other cases count what the second site has.
		$other = static fn(): int => (int) ( get_sites( [ 'path' => '/walk/' ] )[0]->blog_id ?? wp_insert_site( [ 'domain' => 'localhost', 'path' => '/walk/' ] ) );
		$t->test(
			'access: no ability finds a run or bundle of another site of the network',
			static function () use ( $t, $cases, $said, $groups, $no_run, $no_bundle, $other ): void {
				$made   = $t->made();
				$faults = [];
				switch_to_blog( $other() );
				foreach ( $cases( 'run', 'bundle', 'any bundle' ) as $case => [ $ability, $input ] ) {
					foreach ( in_array( $ability, $groups, true ) ? [] : [ [ $made['run']['run_id'], $no_run ], [ $made['artifact_id'], $no_bundle ] ] as [ $id, $none ] ) {
						$unknown = $said( WP_Codebox_API::execute_ability( $ability, $input( $none ) ), $none );
						$refused = $said( WP_Codebox_API::execute_ability( $ability, $input( $id ) ), $id );
						if ( $unknown !== $refused || ! str_contains( (string) json_encode( $refused ), 'not_found' ) ) {
							$faults[] = "$case: " . json_encode( $refused ) . ', an unknown one: ' . json_encode( $unknown );
						}
					}
				}
				restore_current_blog();
				$t->same( [], $faults );
				$t->same( 'ended', $t->ok( $t->ability( 'get-run', [ 'run_id' => $made['run']['run_id'] ] ) )['run']['status'], 'positive control' );
				$t->ok( $t->ability( 'inspect-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ) );
			}
		);
		$t->test(
			'access: a bundle that was imported from another site belongs to no user of this site',
			static function () use ( $t, $granted, $ask, $other ): void {
				$t->made( 'nothing' );
				$granted(
					static function ( string $uuid ) use ( $t, $ask, $other ): void {
						$made    = $t->ok( $ask( 'walk-owner', $uuid, 'run-agent-task', [ 'goal' => 'Fix it', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix' ] ) );
						$id      = $made['run']['run_id'];
						$archive = $t->ok( $ask( 'walk-reviewer', $uuid, 'export-artifact-bundle', [ 'artifact_id' => $id ] ) )['archive'];
						$t->same( true, $t->ok( $ask( 'walk-owner', $uuid, 'replay-artifact', [ 'artifact_id' => $id ] ) )['identical'], 'positive control: an own bundle' );
						switch_to_blog( $other() );
						try {
							$t->same( 'created', $t->ok( $ask( 'walk-reviewer', $uuid, 'import-artifact-bundle', [ 'archive' => $archive ] ) )['status'] );
							$t->error( 'wp_codebox_artifact_not_found', 404, $ask( 'walk-owner', $uuid, 'replay-artifact', [ 'artifact_id' => $id ] ) );
							$t->error( 'wp_codebox_artifact_not_found', 404, $ask( 'walk-owner', $uuid, 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php agent.php nothing', 'follow_up_of' => [ 'run_id' => $id ] ] ) );
							$t->same( true, $t->ok( $ask( 'walk-reviewer', $uuid, 'replay-artifact', [ 'artifact_id' => $id ] ) )['identical'], 'positive control: a reviewer' );
						} finally {
							restore_current_blog();
						}
					}
				);
			}
		);
		return;
	}
	$t->test(
		'access: the walk has a row for every field of an input that names an object',
		static function () use ( $t, $roads ): void {
			$t->same( [], array_diff_key( $roads, array_combine( array_map( static fn( string $name ): string => substr( $name, 11 ), array_keys( WP_Codebox_API::public_abilities() ) ), WP_Codebox_API::public_abilities() ) ), 'rows of abilities that do not exist' );
			$object  = '/^(run_id|artifact_id|artifact_ref|artifact_result|follow_up_of|replay_run_id|parent_request|roots|ref|token|cache_key|site_id|contained_site|preview_lease|lease_id|session|session_id|sandbox_session_id|user_id|change|change_id|snapshot|workspace|workspace_handle|workspace_path|source_bundle_path|source_manifest_path)$/D';
			$lacking = [];
			foreach ( WP_Codebox_API::public_abilities() as $name => $row ) {
				$fields = array_keys( WP_Codebox_API::public_contract_schemas()[ $row['input_schema'] ]['properties'] ?? [] );
				foreach ( array_diff( preg_grep( $object, $fields ), array_keys( $roads[ substr( $name, 11 ) ] ?? [] ) ) as $field ) {
					$lacking[] = "$name, $field";
				}
			}
			$t->same( [], $lacking );
		}
	);
	$t->test(
		'access: a user with the run capability only reaches own runs and bundles, and others give the error of an unknown id',
		static function () use ( $t, $granted, $owned, $ask, $said, $cases, $groups, $no_run, $no_bundle ): void {
			$granted(
				static function ( string $uuid ) use ( $t, $owned, $ask, $said, $cases, $groups, $no_run, $no_bundle ): void {
					[ $run, $artifact ] = $owned( $uuid );
					$faults             = [];
					foreach ( $cases( 'run', 'bundle' ) as $case => [ $ability, $input ] ) {
						if ( in_array( $ability, $groups, true ) ) {
							continue;
						}
						$is_run = isset( $input( $run )['run_id'] );
						foreach ( $is_run ? [ [ $run, $no_run ], [ substr( $run, 0, 20 ), 'run_' . str_repeat( '0', 16 ) ] ] : [ [ $run, $no_run ], [ $artifact, $no_bundle ], [ substr( $run, 0, 20 ), 'run_' . str_repeat( '0', 16 ) ] ] as [ $id, $none ] ) {
							$scoped = array_filter( (array) WP_Codebox_API::public_abilities()[ "wp-codebox/$ability" ]['scopes'] );
							foreach ( [ 'walk-other', 'walk-key', 'walk-nobody', 'visitor' ] as $login ) {
								$unknown = $said( $ask( $login, $uuid, $ability, $input( $none ) ), $none );
								$refused = $said( $ask( $login, $uuid, $ability, $input( $id ) ), $id );
								$allowed = 'walk-other' === $login || 'walk-key' === $login && [] !== $scoped;
								if ( $refused !== $unknown || ! str_contains( (string) json_encode( $unknown ), $allowed ? 'not_found' : 'ability_invalid_permissions' ) ) {
									$faults[] = "$case of $id as $login: " . json_encode( $refused ) . ', an unknown one: ' . json_encode( $unknown );
								}
							}
							// Positive controls. They make bundles of the same change, which have the same artifact id; then only the run id names one.
							// The stand-in of the extension unpacks no bundle for a browser.
							foreach ( 'native' === $t->phase || ! isset( $input( $id )['roots'] ) ? [ 'walk-owner', 'walk-reviewer' ] : [] as $login ) {
								$answer = $ask( $login, $uuid, $ability, $input( $id ) );
								$prefix = 'walk-owner' === $login && ! $is_run && 20 === strlen( $id );
								$text   = (string) json_encode( $said( $answer ) );
								$good   = ! is_wp_error( $answer ) && ! str_contains( $text, 'not_found' );
								if ( $good === $prefix && ! ( $id === $artifact && str_contains( $text, 'walk-owner' === $login ? 'artifact_not_found' : 'artifact_ambiguous' ) ) ) {
									$faults[] = "positive control: $case of $id as $login: " . json_encode( $said( $answer ) );
								}
							}
						}
					}
					$t->same( [], $faults );
				}
			);
		}
	);
	$t->test(
		'access: a replay of another user is compared only for a reviewer',
		static function () use ( $t, $granted, $owned, $ask, $said, $cases, $no_run ): void {
			$granted(
				static function ( string $uuid ) use ( $t, $owned, $ask, $said, $cases, $no_run ): void {
					[ $run ]            = $owned( $uuid );
					[ $ability, $input ] = $cases( 'replay' )['replay-artifact, replay_run_id'];
					$foreign            = $t->ok( $ask( 'walk-reviewer', $uuid, $ability, [ 'artifact_id' => $run ] ) )['replay']['run_id'];
					$own                = $t->ok( $ask( 'walk-owner', $uuid, $ability, [ 'artifact_id' => $run ] ) )['replay']['run_id'];
					$refused            = $ask( 'walk-owner', $uuid, $ability, $input( $foreign, $run ) );
					$t->error( 'wp_codebox_artifact_not_found', 404, $refused );
					$t->same( $said( $ask( 'walk-owner', $uuid, $ability, $input( $no_run, $run ) ), $no_run ), $said( $refused, $foreign ) );
					$t->same( true, $t->ok( $ask( 'walk-owner', $uuid, $ability, $input( $own, $run ) ) )['identical'], 'positive control' );
					$t->same( true, $t->ok( $ask( 'walk-reviewer', $uuid, $ability, $input( $own, $run ) ) )['identical'], 'positive control: a reviewer' );
				}
			);
		}
	);
	$t->test(
		'access: abilities for bundles of all users need the capability to review or apply, also for an own bundle',
		static function () use ( $t, $granted, $owned, $ask, $cases, $user ): void {
			$granted(
				static function ( string $uuid ) use ( $t, $owned, $ask, $cases, $user ): void {
					[ $run ] = $owned( $uuid );
					$whole   = [ 'list-artifacts' => [], 'list-artifact-history' => [], 'list-audit-records' => [] ];
					$named   = array_map( static fn( array $case ): array => [ $case[0], $case[1]( $run ) ], array_values( $cases( 'any bundle' ) ) );
					foreach ( [ ...$named, ...array_map( null, array_keys( $whole ), $whole ) ] as [ $ability, $input ] ) {
						foreach ( [ 'walk-owner', 'walk-other', 'walk-key', 'walk-nobody', 'visitor' ] as $login ) {
							$answer = $ask( $login, $uuid, $ability, $input );
							$t->same( 'ability_invalid_permissions', is_wp_error( $answer ) ? $answer->get_error_code() : null, "$ability as $login" );
						}
						$review = in_array( 'wp_codebox_review', WP_Codebox_API::public_abilities()[ "wp-codebox/$ability" ]['capabilities'], true );
						$t->as( 'administrator' );
						$t->same( true, wp_get_ability( "wp-codebox/$ability" )->check_permissions( $input ), "positive control: $ability" );
						$user( 'walk-reviewer' );
						$t->same( $review, wp_get_ability( "wp-codebox/$ability" )->check_permissions( $input ), "$ability as a reviewer" );
					}
					// Lists of a user with the run capability only have own runs.
					$t->same( [ true, false ], array_map( static fn( string $login ): bool => in_array( $run, array_column( $t->ok( $ask( $login, $uuid, 'list-runs', [ 'per_page' => 200 ] ) )['runs'], 'run_id' ), true ), [ 'walk-owner', 'walk-other' ] ) );
				}
			);
		}
	);
	$t->test(
		'access: a browser session is its user\'s alone, also for administrators',
		static function () use ( $t, $granted, $owned, $ask, $said, $cases ): void {
			$granted(
				static function ( string $uuid ) use ( $t, $owned, $ask, $said, $cases ): void {
					[ , , $site ] = $owned( $uuid );
					$mine         = $ask( 'walk-other', $uuid, 'create-browser-contained-site-session', [ 'goal' => 'Look', 'landing_page' => '/' . wp_rand() . '/' ] )['contained_site'];
					$faults       = [];
					foreach ( $cases( 'session' ) as $case => [ $ability, $input ] ) {
						foreach ( [ 'walk-other', 'walk-reviewer', 'administrator', 'walk-key', 'walk-nobody', 'visitor' ] as $login ) {
							$answer = $ask( $login, $uuid, $ability, $input( $site ) );
							$whole  = (string) json_encode( $answer );
							$code   = is_wp_error( $answer ) ? $answer->get_error_code() : ( $answer['resolution']['reason'] ?? $answer['action'] ?? '' );
							// Abilities that say what cannot be recovered, or that start nothing, answer without an error.
							$denied = is_wp_error( $answer ) ? in_array( $code, [ 'ability_invalid_permissions', 'ability_invalid_input', 'wp_codebox_forbidden' ], true ) || str_ends_with( $code, '_foreign' ) || str_ends_with( $code, '_unavailable' ) : in_array( $code, [ 'foreign', 'cache_miss', 'noop', 'create-new', 'unavailable' ], true ) || in_array( $ability, [ 'snapshot-browser-contained-site', 'export-browser-contained-site', 'plan-browser-contained-site-apply', 'apply-browser-contained-site-plan' ], true );
							if ( ! $denied || str_contains( $whole, '"steps"' ) || str_contains( $whole, 'seed?session' ) ) {
								$faults[] = "$case as $login: " . substr( $whole, 0, 500 );
							}
						}
						if ( ! str_contains( $case, 'destroy-' ) && ! str_contains( $case, 'persist-' ) ) {
							$good = $ask( 'walk-owner', $uuid, $ability, $input( $site ) );
							$text = (string) json_encode( is_wp_error( $good ) ? [ $good->get_error_code(), $good->get_error_message() ] : [] );
							$t->true( ! str_contains( $text, 'foreign' ) && ! str_contains( $text, 'permission' ), "positive control: $case: $text" );
						}
					}
					$t->same( [], $faults );
					$t->same( 'recoverable', $t->ok( $ask( 'walk-owner', $uuid, 'get-browser-contained-site-status', [ 'contained_site' => $site ] ) )['status'], 'another user ended the session' );
					$t->same( 'recoverable', $t->ok( $ask( 'walk-other', $uuid, 'get-browser-contained-site-status', [ 'contained_site' => $mine ] ) )['status'] );
				}
			);
		}
	);
};
