<?php
/**
 * Bundles of files that a browser uploaded: the host's own change, every refusal, and the confirmation of each way to apply.
 */

declare(strict_types=1);

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Apply\ApplyTargets;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\ArtifactSessions;
use WPCodebox\Browser\BundleSeed;
use WPCodebox\Browser\PersistService;
use WPCodebox\Browser\SeedArchives;
use WPCodebox\Browser\SessionBaseline;
use WPCodebox\Browser\SessionRecord;
use WPCodebox\Browser\SessionStore;
use WPCodebox\DirectApply\DirectApply;
use WPCodebox\DirectApply\HealthCheck;
use WPCodebox\DirectApply\RecoveryLink;
use WPCodebox\DirectApply\SensitiveFiles;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\GitBranch\GitBranch;
use WPCodebox\GitBranch\Repository;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Extension;
use WPCodebox\Services;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$target = '/wordpress/wp-content/plugins/sample/';
	$file   = $target . 'sample.php';
	$plugin = WP_PLUGIN_DIR . '/sample/';
	$fresh  = static function () use ( $t, $plugin ): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, $plugin . $name );
		}
		$t->as( 'administrator' );
	};
	/** Packs files by name into a zip and returns its path. */
	$zip = static function ( array $files ): string {
		$path    = (string) tempnam( sys_get_temp_dir(), 'seed' );
		$archive = new ZipArchive();
		$archive->open( $path, ZipArchive::OVERWRITE );
		foreach ( $files as $name => $bytes ) {
			$archive->addFromString( $name, $bytes );
		}
		$archive->close();
		return $path;
	};
	$seed = static fn(): string => $zip( [
		'sample.php'   => (string) file_get_contents( $plugin . 'sample.php' ),
		'inc/more.php' => (string) file_get_contents( $plugin . 'inc/more.php' ),
	] );
	/** Sessions of a test: records by session id, and paths of archives by sha256. */
	$store = static fn( array $records, array $archives ): ArtifactSessions => new class( $records, $archives ) implements ArtifactSessions {

		public function __construct( private array $records, private array $archives ) {}

		public function baseline( string $session_id ): SessionBaseline {
			return $this->records[ $session_id ] ?? throw Failure::because( ErrorCode::InputInvalid, 'There is no such session; open one.' );
		}

		public function archive( string $sha256 ): ?string {
			return $this->archives[ $sha256 ] ?? null;
		}
	};
	$plugin_root = WP_PLUGIN_DIR . '/wp-codebox/abilities';
	$services    = static fn(): Services => new Services( new ExtensionGate( \WPCodebox\VERSION, ( require $plugin_root . '/manifest.php' )['contract_digest'] ), new SchemaStore( $plugin_root . '/schemas' ) );
	$persist  = static function ( ArtifactSessions $sessions, array $input ) use ( $services ): array|WP_Error {
		$own = $services();
		try {
			return ( new PersistService( $own->gate, $sessions, $own->artifacts, $own->site, new AuditTrail( $own->site ), $own->callers ) )->persist( $input );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
	};
	/** Opens a session of the current user on the sample plugin. */
	$session = static function ( array $more = [], ?string $archive = null ) use ( $store, $seed ): ArtifactSessions {
		$archive ??= $seed();
		$sha256    = (string) hash_file( 'sha256', $archive );
		$record    = $more + [
			'user' => get_current_user_id(),
			'blog' => get_current_blog_id(),
			'hash' => $sha256,
			'root' => 'plugins/sample',
		];
		return $store( [ 'session-1' => new SessionBaseline( 'session-1', $record['user'], $record['blog'], [ [ 'target' => $record['root'], 'archive' => $record['hash'] ] ] ) ], [ $record['hash'] => $archive ] );
	};
	$new   = static fn( string $word = 'hello' ): string => str_replace( 'helo', $word, (string) file_get_contents( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php' ) );
	$edit  = static fn( string $word = 'hello' ): array => [
		'session_id' => 'session-1',
		'files'      => [
			[
				'path'           => 'plugins/sample/sample.php',
				'content_base64' => base64_encode( $new( $word ) ),
			],
		],
	];
	/** Keeps an edit of the sample plugin as a bundle. */
	$kept = static function ( string $word = 'hello', array $more = [] ) use ( $t, $fresh, $persist, $session, $edit ): array {
		$fresh();
		return $t->ok( $persist( $session(), $more + $edit( $word ) ) );
	};
	$input = static fn( array $made, array $more = [] ): array => $more + [
		'artifact_id'    => $made['run_id'],
		'approved_files' => [ $file ],
	];
	$text      = static fn(): string => (string) file_get_contents( $plugin . 'sample.php' );
	$confirmed = [ 'confirm_browser_origin' => true ];
	$code      = 'wp_codebox_apply_browser_origin_unconfirmed';

	$t->test(
		'browser bundle: an upload in a session becomes a verified bundle, and an equal one returns it',
		static function () use ( $t, $kept, $persist, $session, $edit, $file, $text ): void {
			$claims = [
				'provenance'   => [ 'changed_files' => [ 'plugins/sample/other.php' ], 'patch' => 'forged', 'origin' => 'sandbox' ],
				'caller'       => [ 'name' => 'studio' ],
				'review_hints' => [ 'note' => str_repeat( 'ghp_', 1 ) . str_repeat( 'a1B2c3D4e5F6', 3 ) ],
			];
			$made = $kept( 'hello', $claims );
			$t->same( [ true, 'wp-codebox/browser-artifact-persistence/v1', 'created', 'browser', 'session-1' ], [ $made['success'], $made['schema'], $made['status'], $made['origin'], $made['session_id'] ] );
			$t->same( [ true, 'browser-origin', 'browser' ], [ $made['verification']['valid'], $made['verification']['signature']['status'], $made['verification']['signature']['origin'] ] );
			$t->same( [ $made['artifact_id'], $made['content_digest'] ], [ $made['artifact_ref']['id'], $made['artifact_ref']['digest']['value'] ] );
			$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/browser-artifact-persistence.v1.schema.json' ), true );
			$t->same( true, rest_validate_value_from_schema( $made, $schema, 'answer' ) );
			$bundle = $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $made['run_id'] ] ) )['artifact'];
			$t->same( [ $file ], array_column( $bundle['changed_files']['files'], 'path' ), 'the host computes the changed files' );
			$t->same( [ 'browser', 'browser', 'admin', 'session-1', 'forged' ], [ $bundle['metadata']['origin'], $bundle['metadata']['provenance']['origin'], $bundle['metadata']['provenance']['requester']['login'], $bundle['metadata']['provenance']['session_id'], $bundle['metadata']['provenance']['claims']['provenance']['patch'] ] );
			$t->true( ! str_contains( (string) json_encode( $bundle ), 'ghp_a1B2' ), 'a claim is redacted' );
			$t->true( ! str_contains( (string) file_get_contents( $bundle['directory'] . '/files/patch.diff' ), 'forged' ), 'the patch is that of the host' );
			$t->contains( "'helo'", $text() );
			$t->same( [ 'persist-browser-artifact', 'success', $made['run_id'], 'admin' ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['run_id'], $t->audited()[0]['requester']['login'] ] );
			$again = $t->ok( $persist( $session(), $edit() ) );
			$t->same( [ 'existing', $made['run_id'], $made['manifest_sha256'] ], [ $again['status'], $again['run_id'], $again['manifest_sha256'] ] );
		}
	);
	$t->test(
		'browser bundle: a session that is unknown, of another user or of another site, and a forged or missing baseline are refused',
		static function () use ( $t, $fresh, $persist, $session, $store, $edit, $zip, $seed ): void {
			$fresh();
			$other  = $zip( [ 'sample.php' => '<?php // another baseline' ] );
			$sha256 = (string) hash_file( 'sha256', $seed() );
			foreach ( [
				[ 'wp_codebox_input_invalid', 400, $store( [], [] ) ],
				[ 'wp_codebox_forbidden', 403, $session( [ 'user' => get_current_user_id() + 1 ] ) ],
				[ 'wp_codebox_forbidden', 403, $session( [ 'blog' => get_current_blog_id() + 1 ] ) ],
				[ 'wp_codebox_browser_artifact_baseline_invalid', 409, $session( [ 'hash' => $sha256 ], $other ) ],
				[ 'wp_codebox_browser_artifact_baseline_invalid', 409, $session( [ 'hash' => $sha256 ], '/nonexistent/seed.zip' ) ],
				[ 'wp_codebox_mount_source_invalid', 400, $session( [ 'root' => 'plugins' ] ) ],
				[ 'wp_codebox_mount_source_invalid', 400, $session( [ 'root' => 'mu-plugins/x' ] ) ],
			] as [ $code, $status, $sessions ] ) {
				$t->error( $code, $status, $persist( $sessions, $edit( 'refused' ) ) );
				$t->same( [ 'persist-browser-artifact', 'failure', $code ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
			}
			$two = $persist( $session(), [ 'session' => [ 'session_id' => 'session-2' ] ] + $edit( 'refused' ) );
			$t->error( 'wp_codebox_input_invalid', 400, $two );
			$named = [ 'session' => [ 'session_id' => 'session-1' ] ] + array_diff_key( $edit( 'named' ), [ 'session_id' => 1 ] );
			$t->same( 'session-1', $t->ok( $persist( $session(), $named ) )['session_id'], 'positive control' );
		}
	);
	$t->test(
		'browser bundle: the ability finds a stored session, and refuses one that is unknown, expired or of another user',
		static function () use ( $t, $fresh, $seed, $edit, $services, $file ): void {
			$fresh();
			$keep  = static function ( string $source ) use ( $services ): string {
				$files = $services()->browser_files;
				$path  = $files->temporary();
				rename( $source, $path );
				return $files->add( $path )['sha256'];
			};
			$row   = [ 'target' => 'plugins/sample', 'archive' => $keep( $seed() ) ];
			$open  = static fn( string $id, int $user, int $until, array $row ) => ( new SessionStore() )->keep( new SessionRecord( $id, 'site-1', 'preview-1', 'key-1', str_repeat( 'a', 64 ), 'admin', 'opaque', $user, get_current_blog_id(), time() - 60, $until, [ $row ] ) );
			$me    = get_current_user_id();
			$name  = static fn( string $id, string $word ): array => [ 'session_id' => $id ] + $edit( $word );
			$until = time() + 600;
			$open( 'mine', $me, $until, $row );
			$open( 'old', $me, time() - 1, $row );
			$open( 'theirs', $me + 1, $until, $row );
			foreach ( [ [ 'wp_codebox_browser_session_unknown', 404, 'none' ], [ 'wp_codebox_browser_session_expired', 410, 'old' ], [ 'wp_codebox_browser_session_foreign', 403, 'theirs' ] ] as [ $code, $status, $id ] ) {
				$t->error( $code, $status, $t->ability( 'persist-browser-artifact', $name( $id, 'stored' ) ) );
			}
			$made = $t->ok( $t->ability( 'persist-browser-artifact', $name( 'mine', 'stored' ) ) );
			$t->same( [ 'created', 'mine', 'preview-1', [ $file ] ], [ $made['status'], $made['session_id'], $made['artifact']['metadata']['provenance']['preview_id'], array_column( $made['artifact']['changed_files']['files'], 'path' ) ] );
		}
	);
	$t->test(
		'browser bundle: an upload without a change, without files, outside the session, malformed or with a secret is refused',
		static function () use ( $t, $fresh, $persist, $session, $edit ): void {
			$fresh();
			$row   = static fn( array $row ): array => [ 'files' => [ $row + [ 'path' => 'plugins/sample/x.txt' ] ] ];
			$tries = [
				[ 'wp_codebox_browser_artifact_unchanged', 409, $edit( 'helo' ) ],
				[ 'wp_codebox_browser_artifact_files_missing', 400, [] ],
				[ 'wp_codebox_browser_artifact_files_missing', 400, [ 'files' => [] ] ],
				[ 'wp_codebox_browser_artifact_file_invalid', 400, $row( [] ) ],
				[ 'wp_codebox_browser_artifact_file_invalid', 400, $row( [ 'content' => 'x', 'content_base64' => 'eA==' ] ) ],
				[ 'wp_codebox_browser_artifact_encoding_invalid', 400, $row( [ 'content' => 'x', 'encoding' => 'utf-16' ] ) ],
				[ 'wp_codebox_browser_artifact_base64_invalid', 400, $row( [ 'content_base64' => '!!!' ] ) ],
				[ 'wp_codebox_browser_artifact_path_invalid', 400, $row( [ 'path' => 'plugins/sample/../other/x.php', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_path_invalid', 400, $row( [ 'path' => 'plugins/other/x.php', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_path_invalid', 400, $row( [ 'path' => 'plugins/sample/wp-config.php', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_path_duplicate', 400, $row( [ 'path' => 'plugins/sample/Sample.php', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_file_invalid', 400, [ 'deleted' => [ 'plugins/sample/none.php' ] ] ],
				[ 'wp_codebox_secret_in_patch', 422, $row( [ 'content' => 'ghp_' . str_repeat( 'a1B2c3D4e5F6', 3 ) ] ) ],
				[ 'wp_codebox_input_invalid', 400, $row( [ 'content' => 'x' ] ) + [ 'provenance' => [ 'long' => str_repeat( 'x', 70000 ) ] ] ],
			];
			foreach ( $tries as [ $code, $status, $more ] ) {
				$error = $persist( $session(), $more + [ 'session_id' => 'session-1' ] );
				$t->true( is_wp_error( $error ) && $code === $error->get_error_code(), "$code: " . ( is_wp_error( $error ) ? $error->get_error_code() : 'stored' ) );
			}
			$made = $t->ok( $persist( $session(), [ 'session_id' => 'session-1', 'deleted' => [ 'plugins/sample/inc/more.php' ] ] ) );
			$t->same( [ 'deleted' ], array_column( $made['artifact']['changed_files']['files'], 'status' ), 'positive control' );
		}
	);
	$t->test(
		'browser bundle: without a session only documents are kept, below a target that is no code of the site',
		static function () use ( $t, $fresh, $input ): void {
			$fresh();
			$page = [ 'files' => [ [ 'path' => 'site/index.html', 'content' => '<h1>x</h1>', 'mime_type' => 'text/html', 'kind' => 'page' ] ] ];
			$made = $t->ok( $t->ability( 'persist-browser-artifact', $page ) );
			$t->same( [ 'created', 'none', 'page' ], [ $made['status'], $made['artifact']['metadata']['provenance']['baseline'], $made['artifact']['metadata']['provenance']['claims']['files'][0]['kind'] ] );
			$t->same( [ '/workspace/browser-artifact/site/index.html' ], array_column( $made['artifact']['changed_files']['files'], 'path' ) );
			$t->same( 'existing', $t->ok( $t->ability( 'persist-browser-artifact', $page ) )['status'] );
			foreach ( [ 'x.php', 'x.PHP', 'x.phtml', 'x.php.txt', 'plugins/sample/sample.php', 'x.cgi' ] as $path ) {
				$t->error( 'wp_codebox_browser_artifact_extension_blocked', 403, $t->ability( 'persist-browser-artifact', [ 'files' => [ [ 'path' => $path, 'content' => 'x' ] ] ] ) );
			}
			$t->error( 'wp_codebox_browser_artifact_file_too_large', 413, $t->ability( 'persist-browser-artifact', [ 'files' => [ [ 'path' => 'x.txt', 'content' => str_repeat( 'x', 5242881 ) ] ] ] ) );
			$apply = [ 'approved_files' => [ '/workspace/browser-artifact/site/index.html' ], 'confirm_browser_origin' => true ];
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'apply-approved-artifact', $input( $made, $apply ) ) );
			$t->error( 'wp_codebox_apply_target_mismatch', 409, $t->ability( 'apply-approved-artifact', $input( $made, $apply + [ 'apply_target' => [ 'directory' => WP_PLUGIN_DIR . '/sample' ] ] ) ) );
		}
	);
	$t->test(
		'browser bundle: the input has no field for origin, baseline, signer or patch',
		static function () use ( $t, $fresh ): void {
			$fresh();
			$page = [ 'files' => [ [ 'path' => 'index.html', 'content' => 'x' ] ] ];
			foreach ( [ 'origin', 'baseline', 'roots', 'identity', 'signer', 'patch', 'changed_files', 'content_digest' ] as $field ) {
				$t->error( 'ability_invalid_input', 400, $t->ability( 'persist-browser-artifact', $page + [ $field => [ 'x' ] ] ) );
			}
			$t->error( 'ability_invalid_input', 400, $t->ability( 'persist-browser-artifact', [ 'files' => [ $page['files'][0] + [ 'patch' => 'x' ] ] ] ) );
			$t->ok( $t->ability( 'persist-browser-artifact', $page ) );
		}
	);
	$t->test(
		'browser bundle: an application password with artifact:write keeps files only as files from a browser',
		static function () use ( $t, $input, $confirmed ): void {
			add_filter( 'wp_is_application_passwords_available', '__return_true' );
			$known = get_user_by( 'login', 'uploader' );
			$user  = $known ? $known->ID : (int) wp_insert_user( [ 'user_login' => 'uploader', 'user_pass' => wp_generate_password(), 'user_email' => 'u@example.org', 'role' => 'subscriber' ] );
			$uuid  = WP_Application_Passwords::create_new_application_password( $user, [ 'name' => 'u ' . wp_rand() ] )[1]['uuid'];
			wp_set_current_user( $user );
			$page = [ 'files' => [ [ 'path' => 'token.html', 'content' => 'x' ] ], 'authorization' => [ 'caller' => 'somebody', 'scope' => 'artifact:write' ] ];
			try {
				$t->same( 'ability_invalid_permissions', $t->ability( 'persist-browser-artifact', $page )->get_error_code() );
				$GLOBALS['wp_rest_application_password_uuid'] = $uuid;
				update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-connector:request' ] ] );
				$t->same( 'ability_invalid_permissions', $t->ability( 'persist-browser-artifact', $page )->get_error_code() );
				update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'artifact:write' ] ] );
				$made = $t->ok( $t->ability( 'persist-browser-artifact', $page ) );
				$t->same( [ 'browser', 'browser-origin', $uuid, 'trusted-orchestrator' ], [ $made['origin'], $made['verification']['signature']['status'], $made['authorization']['caller'], $made['authorization']['method'] ] );
				$t->same( $uuid, $made['artifact']['metadata']['provenance']['caller']['caller'] );
				$t->true( ! str_starts_with( (string) $made['directory'], '/' ) || ! is_dir( $made['directory'] ), 'a caller who cannot review sees a directory of the host' );
				$t->same( 'ability_invalid_permissions', $t->ability( 'apply-approved-artifact', $input( $made, $confirmed ) )->get_error_code() );
			} finally {
				$GLOBALS['wp_rest_application_password_uuid'] = null;
				delete_site_option( Settings::TRUSTED_CALLERS );
				remove_filter( 'wp_is_application_passwords_available', '__return_true' );
			}
		}
	);
	$t->test(
		'browser bundle: preflight reports the origin; apply needs its confirmation, records it and tells the adapter',
		static function () use ( $t, $kept, $input, $text, $confirmed, $code ): void {
			$made   = $kept();
			$flight = $t->ok( $t->ability( 'apply-artifact-preflight', $input( $made ) ) );
			$t->same( [ true, true, false ], [ $flight['browser_origin'], $flight['payload']['browser_origin'], $flight['payload']['browser_origin_confirmed'] ] );
			$called = 0;
			$spy    = static function ( mixed $result, array $payload ) use ( &$called, &$seen ): mixed {
				++$called;
				$seen = $payload;
				return $result;
			};
			add_filter( 'wp_codebox_apply_approved_artifact', $spy, 5, 2 );
			foreach ( [ [], [ 'approval' => $flight['approval'] ], [ 'confirm_sensitive' => true ], [ 'confirm_browser_origin' => false ] ] as $more ) {
				$t->error( 'wp_codebox_apply_browser_origin_unconfirmed', 403, $t->ability( 'apply-approved-artifact', $input( $made, $more ) ) );
				$t->same( [ 'apply', 'failure', $code ], [ $t->audited()[0]['event'], $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
			}
			$t->same( [ 0, true ], [ $called, str_contains( $text(), "'helo'" ) ], 'no adapter is asked' );
			$done = $t->ok( $t->ability( 'apply-approved-artifact', $input( $made, $confirmed + [ 'approval' => $flight['approval'] ] ) ) );
			remove_filter( 'wp_codebox_apply_approved_artifact', $spy, 5 );
			$t->same( [ 1, true, true, 'applied' ], [ $called, $seen['browser_origin'], $seen['browser_origin_confirmed'], $done['result']['status'] ] );
			$t->contains( "'hello'", $text() );
			$t->same( [ [ 'apply-approved', true ], [ 'apply', true ] ], array_map( static fn( array $row ): array => [ $row['event'], $row['browser_origin_confirmed'] ?? false ], $t->audited( 2 ) ) );
			// The change of a sandbox needs no confirmation, and no record says that there was one.
			$run = $t->made();
			$t->same( false, $t->ok( $t->ability( 'apply-artifact-preflight', $input( $run['run'] ) ) )['browser_origin'] );
			$t->ok( $t->ability( 'apply-approved-artifact', $input( $run['run'], $confirmed ) ) );
			$t->true( ! isset( $t->audited()[0]['browser_origin_confirmed'] ), 'a confirmation without an origin is recorded' );
		}
	);
	$t->test(
		'browser bundle: a staged apply carries the confirmation of a user who may apply, and is refused without it',
		static function () use ( $t, $kept, $input, $text, $confirmed, $code ): void {
			$made = $kept();
			$t->hosts(
				[ 'host-plugin', 'host-pending-actions' ],
				static function () use ( $t, $made, $input, $text, $confirmed, $code ): void {
					$store = new WPCodeboxPendingActions\Pending_Actions();
					$t->error( $code, 403, $t->ability( 'stage-artifact-apply', $input( $made ) ) );
					$grant   = static fn( array $caps, string $cap ): array => 'wp_codebox_review' === $cap ? [ 'edit_posts' ] : $caps;
					$refused = $t->filtered(
						'map_meta_cap',
						$grant,
						static function () use ( $t, $made, $input, $confirmed ): mixed {
							$t->as( 'editor' );
							return $t->ability( 'stage-artifact-apply', $input( $made, $confirmed ) );
						}
					);
					$t->as( 'administrator' );
					$t->error( 'wp_codebox_forbidden', 403, $refused );
					$staged = $t->ok( $t->ability( 'stage-artifact-apply', $input( $made, $confirmed ) ) );
					$t->same( true, $t->audited()[0]['browser_origin_confirmed'] );
					$action = $store->get( $staged['pending_action_id'] );
					$t->same( [ true, true ], [ $action['apply_input']['confirm_browser_origin'], $action['preview_data']['browser_origin'] ] );
					$handler = apply_filters( 'wp_codebox_pending_apply_artifact_handlers', [] )['wp_codebox_apply_back']['apply'];
					$t->error( $code, 403, $handler( array_diff_key( $action['apply_input'], $confirmed ) ) );
					$t->contains( "'helo'", $text() );
					$t->ok( $store->accept( $staged['pending_action_id'] ) );
					$t->contains( "'hello'", $text() );
					$t->same( true, $t->audited()[0]['browser_origin_confirmed'] );
				}
			);
		}
	);
	$t->test(
		'browser bundle: an approval in a review needs the confirmation before any hook runs; a rejection does not',
		static function () use ( $t, $kept, $input, $text, $confirmed, $code ): void {
			$made  = $kept();
			$asked = 0;
			$ask   = static function ( mixed $result ) use ( &$asked ): mixed {
				++$asked;
				return $result;
			};
			$t->filtered(
				'wp_codebox_review_artifact_decision',
				$ask,
				static function () use ( $t, $made, $input, $text, $confirmed, $code, &$asked ): void {
					$t->error( $code, 403, $t->ability( 'review-artifact', $input( $made, [ 'action' => 'approve' ] ) ) );
					$t->same( 0, $asked );
					$t->ok( $t->ability( 'review-artifact', [ 'artifact_id' => $made['run_id'], 'action' => 'reject', 'reason' => 'no' ] ) );
					$t->same( 1, $asked );
					$t->ok( $t->ability( 'review-artifact', $input( $made, $confirmed + [ 'action' => 'approve' ] ) ) );
					$t->contains( "'hello'", $text() );
					$t->same( true, $t->audited()[0]['browser_origin_confirmed'] );
				},
				1
			);
		}
	);
	$t->test(
		'browser bundle: direct apply and the git branch check the confirmation themselves, and a roll back needs none',
		static function () use ( $t, $kept, $input, $text, $confirmed, $code, $services, $file ): void {
			$made     = $kept();
			$settings = new Settings();
			$site     = new Site( new InstalledCode() );
			update_site_option( Settings::DIRECT_APPLY, true );
			$directory = getenv( 'TEST_WORK' ) . '/roots/browser-' . bin2hex( random_bytes( 4 ) );
			wp_mkdir_p( $directory . '/wp-content/plugins' );
			exec( sprintf( 'cd %1$s && git init -q -b main . && cp -r %2$s/sample wp-content/plugins/ && git add -A && git -c user.name=t -c user.email=t@localhost commit -q -m base && chown -R %3$d .', escapeshellarg( $directory ), escapeshellarg( (string) getenv( 'TEST_FIXTURES' ) ), fileowner( Extension::info()['state_dir'] ) ) );
			try {
				$t->hosts(
					[],
					static function () use ( $t, $made, $input, $text, $confirmed, $code, $settings, $site, $services, $directory, $file ): void {
						$direct = new DirectApply( $settings, $site, new SensitiveFiles(), new HealthCheck( $settings ), new RecoveryLink( $site ) );
						$direct->register();
						$payload = $services()->applies->preflight( $input( $made ), Authority::User )['payload'];
						$t->error( $code, 403, $direct->answer( null, $payload ) );
						$t->error( $code, 403, $t->ability( 'apply-approved-artifact', $input( $made ) ) );
						$t->contains( "'helo'", $text() );
						$t->same( 'applied', $t->ok( $t->ability( 'apply-approved-artifact', $input( $made, $confirmed ) ) )['result']['status'] );
						$t->contains( "'hello'", $text() );
						$t->same( 'restored', $t->ok( $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run_id'] ] ) )['result']['status'] );
						$t->contains( "'helo'", $text() );
						update_site_option( Settings::GIT_BRANCH, [ 'repository' => $directory, 'directory' => 'wp-content/{path}' ] );
						$branch = new GitBranch( $settings, $site, new Repository( $settings ) );
						$branch->register();
						$t->error( $code, 403, $branch->answer( null, $payload ) );
						$done = $branch->answer( null, [ 'browser_origin_confirmed' => true ] + $payload );
						$t->same( 'committed', is_wp_error( $done ) ? $done->get_error_message() : $done['status'] );
						$t->contains( 'Codebox-Origin: browser', (string) shell_exec( 'git -c safe.directory=* -C ' . escapeshellarg( $directory ) . ' log -1 --format=%B ' . escapeshellarg( $done['branch'] ) ) );
					}
				);
			} finally {
				delete_site_option( Settings::DIRECT_APPLY );
				delete_site_option( Settings::GIT_BRANCH );
			}
		}
	);
	$t->test(
		'browser bundle: a plugin of a single file is kept, opened again, applied to its file alone and taken back',
		static function () use ( $t, $persist, $session, $zip, $confirmed, $services ): void {
			$t->as( 'administrator' );
			$path   = WP_PLUGIN_DIR . '/single.php';
			$code   = "<?php\n/* Plugin Name: Single */\nreturn 'one';\n";
			$edited = str_replace( 'one', 'two', $code );
			$write  = static function ( ?string $text ) use ( $path ): void {
				null === $text ? unlink( $path ) : file_put_contents( $path, $text );
				wp_cache_delete( 'plugins', 'plugins' );
			};
			$upload = static fn( string $name ): array => [ 'session_id' => 'session-1', 'files' => [ [ 'path' => $name, 'content' => $edited ] ] ];
			$opened = static fn(): ArtifactSessions => $session( [ 'root' => 'plugins/single.php' ], $zip( [ 'single.php' => $code ] ) );
			$write( $code );
			update_site_option( Settings::DIRECT_APPLY, true );
			try {
				foreach ( [ 'plugins/other.php', 'plugins/single.php/x', 'plugins/wp-codebox/wp-codebox.php', 'plugins/.htaccess' ] as $name ) {
					$t->error( 'wp_codebox_browser_artifact_path_invalid', 400, $persist( $opened(), $upload( $name ) ) );
				}
				$made  = $t->ok( $persist( $opened(), $upload( 'plugins/single.php' ) ) );
				$file  = '/wordpress/wp-content/plugins/single.php';
				$apply = [ 'artifact_id' => $made['run_id'], 'approved_files' => [ $file ] ];
				$t->same( [ [ $file, 'modified' ] ], array_map( static fn( array $row ): array => [ $row['path'], $row['status'] ], $made['artifact']['changed_files']['files'] ) );
				$own   = $services();
				$seeds = new SeedArchives( $own->code, new ArchiveWriter( $own->browser_files ), new BundleSeed( $own->access, $own->artifacts, new ApplyTargets( $own->code, $own->site ), $own->site, $own->browser_files ) );
				$rows  = $seeds->pack( [ [ 'kind' => 'bundle', 'slug' => $made['run_id'] ] ] );
				$t->same( [ 'plugins/single.php', [] ], [ $rows[0]['target'], $rows[0]['overlay']['deleted'] ] );
				foreach ( [ 'archive' => $code, 'overlay' => $edited ] as $part => $text ) {
					$archive = new ZipArchive();
					$archive->open( (string) $own->browser_files->path( $rows[0][ $part ]['sha256'] ) );
					$t->same( [ 1, $text ], [ $archive->numFiles, $archive->getFromName( 'single.php' ) ], $part );
				}
				$before = scandir( WP_PLUGIN_DIR );
				$t->hosts(
					[],
					static function () use ( $t, $apply, $made, $confirmed, $write, $code, $path, $edited ): void {
						$settings = new Settings();
						$site     = new Site( new InstalledCode() );
						( new DirectApply( $settings, $site, new SensitiveFiles(), new HealthCheck( $settings ), new RecoveryLink( $site ) ) )->register();
						$t->error( 'wp_codebox_apply_browser_origin_unconfirmed', 403, $t->ability( 'apply-approved-artifact', $apply ) );
						$write( null );
						$t->error( 'wp_codebox_apply_conflict', 409, $t->ability( 'apply-approved-artifact', $apply + $confirmed ) );
						$write( $code . '// Changed later.' );
						$t->error( 'wp_codebox_apply_conflict', 409, $t->ability( 'apply-approved-artifact', $apply + $confirmed ) );
						$write( $code );
						$done = $t->ok( $t->ability( 'apply-approved-artifact', $apply + $confirmed ) );
						$t->same( [ 'applied', $edited ], [ $done['result']['status'], file_get_contents( $path ) ] );
						$t->same( 'restored', $t->ok( $t->ability( 'rollback-artifact', [ 'artifact_id' => $made['run_id'] ] ) )['result']['status'] );
						$t->same( $code, file_get_contents( $path ) );
					}
				);
				$t->same( $before, scandir( WP_PLUGIN_DIR ), 'nothing else changed' );
			} finally {
				delete_site_option( Settings::DIRECT_APPLY );
				is_file( $path ) && $write( null );
			}
		}
	);
	$t->test(
		'apply targets: in the plugin directory only installed plugins of a single file can be changed',
		static function () use ( $t ): void {
			$path = WP_PLUGIN_DIR . '/single.php';
			file_put_contents( $path, "<?php\n/* Plugin Name: Single */\n" );
			wp_cache_delete( 'plugins', 'plugins' );
			$directory = getenv( 'TEST_WORK' ) . '/bundle-' . bin2hex( random_bytes( 4 ) );
			wp_mkdir_p( $directory . '/files' );
			/** Returns a bundle that changes a file of the plugin directory, as a trusted other host could make it. */
			$bundle  = static function ( string $relative, array $origin ) use ( $directory ): array {
				$mounts = (string) wp_json_encode( [ 'target' => '/wordpress/wp-content/plugins', 'metadata' => [ 'origin' => $origin ] ] ) . "\n";
				file_put_contents( $directory . '/files/mounts.jsonl', $mounts );
				return [
					'directory'     => $directory,
					'manifest'      => [ 'files' => [ [ 'path' => 'files/mounts.jsonl', 'sha256' => [ 'value' => hash( 'sha256', $mounts ) ] ] ] ],
					'changed_files' => [ 'files' => [ [ 'path' => 'a', 'mountTarget' => '/wordpress/wp-content/plugins', 'relativePath' => $relative ] ] ],
				];
			};
			$targets = new ApplyTargets( new InstalledCode(), new Site( new InstalledCode() ) );
			$resolve = static function ( string $relative, array $origin ) use ( $targets, $bundle ): array|string {
				try {
					return $targets->resolve( $bundle( $relative, $origin ), [ 'a' ], [], Authority::User );
				} catch ( Failure $failure ) {
					return $failure->error_code;
				}
			};
			$single = [ 'kind' => 'plugin-files' ];
			try {
				$t->same( [ '/wordpress/wp-content/plugins' => realpath( WP_PLUGIN_DIR ) ], $resolve( 'single.php', $single ) );
				foreach ( [ 'other.php', 'index.php', 'wp-codebox/wp-codebox.php', 'sample/sample.php', '../x.php', '.htaccess', '' ] as $relative ) {
					$t->same( 'wp_codebox_apply_conflict', $resolve( $relative, $single ), $relative );
				}
				foreach ( [ [ 'kind' => 'plugin', 'slug' => 'single.php' ], [ 'kind' => 'plugin-files', 'slug' => 'x' ], [] ] as $origin ) {
					$t->same( 'wp_codebox_input_invalid', $resolve( 'single.php', $origin ), (string) wp_json_encode( $origin ) );
				}
			} finally {
				unlink( $path );
				wp_cache_delete( 'plugins', 'plugins' );
			}
		}
	);
	$t->test(
		'browser bundle: wp codebox artifacts apply needs --confirm-browser-origin',
		static function () use ( $t, $kept, $code ): void {
			$made = $kept();
			$wp   = static fn( string ...$flags ): array => $t->wp( [ 'codebox', 'artifacts', 'apply', $made['run_id'], '--all', ...$flags ] );
			$said = $wp();
			$t->same( 126, $said[0], $said[2] );
			$t->contains( "($code)", $said[2] );
			$t->same( 126, $wp( '--confirm-sensitive' )[0] );
			$t->contains( 'contents from a browser', implode( '', $t->wp( [ 'codebox', 'artifacts', 'inspect', $made['run_id'] ] ) ) );
			$said = $wp( '--confirm-browser-origin' );
			$t->same( 0, $said[0], $said[2] );
		}
	);
	$t->test(
		'browser bundle: a bundle of another host stays untrusted, with a confirmation too',
		static function () use ( $t, $kept, $input, $confirmed ): void {
			$made    = $kept();
			$archive = $t->ok( $t->ability( 'export-artifact-bundle', [ 'artifact_id' => $made['run_id'] ] ) )['archive'];
			$t->same( 'existing', $t->ok( $t->ability( 'import-artifact-bundle', [ 'archive' => $archive ] ) )['status'] );
			$t->same( false, $t->ok( $t->ability( 'import-artifact-bundle', [ 'archive' => $archive ] ) )['trusted'] );
			$keys  = Extension::info()['state_dir'] . '/keys';
			$other = $keys . '-other';
			rename( $keys, $other );
			try {
				$t->error( 'wp_codebox_artifact_untrusted', 403, $t->ability( 'apply-approved-artifact', $input( $made, $confirmed ) ) );
			} finally {
				exec( 'rm -rf ' . escapeshellarg( $keys ) );
				rename( $other, $keys );
			}
			$t->ok( $t->ability( 'apply-approved-artifact', $input( $made, $confirmed ) ) );
		}
	);
	$t->test(
		'normalize-browser-artifact-bundle returns files with sizes and digests, and refuses each mistake with its code',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$page = [
				'schema_id'  => 'studio/site/v1',
				'entrypoint' => 'index.html',
				'root'       => '/site/',
				'roles'      => [ 'entry' => 'index.html' ],
				'files'      => [
					[ 'path' => 'style.css', 'content_base64' => base64_encode( 'a{}' ) ],
					[ 'path' => 'index.html', 'content' => '<h1>x</h1>', 'roles' => [ 'entry' ] ],
				],
			];
			$done = $t->ok( $t->ability( 'normalize-browser-artifact-bundle', $page ) );
			$t->same( [ 'wp-codebox/browser-artifact-bundle-normalization/v1', 'studio/site/v1', 'site', 'index.html' ], [ $done['schema'], $done['caller_schema'], $done['root'], $done['entrypoint'] ] );
			$t->same( [ 'path' => 'index.html', 'encoding' => 'utf-8', 'mime_type' => 'text/html', 'size' => 10, 'sha256' => hash( 'sha256', '<h1>x</h1>' ), 'kind' => 'file', 'roles' => [ 'entry' ], 'content' => '<h1>x</h1>' ], $done['files'][0] );
			$t->same( [ 'style.css', 'base64', 3, hash( 'sha256', 'a{}' ) ], [ $done['files'][1]['path'], $done['files'][1]['encoding'], $done['files'][1]['size'], $done['files'][1]['sha256'] ] );
			$t->same( $done['content_digest'], $t->ok( $t->ability( 'normalize-browser-artifact-bundle', [ 'files' => array_reverse( $page['files'] ) ] + $page ) )['content_digest'] );
			$with = static fn( array ...$files ): array => [ 'files' => [ ...$page['files'], ...$files ] ] + $page;
			foreach ( [
				[ 'wp_codebox_browser_artifact_schema_missing', 400, [ 'schema_id' => ' ' ] + $page ],
				[ 'wp_codebox_browser_artifact_files_missing', 400, [ 'files' => [] ] + $page ],
				[ 'wp_codebox_browser_artifact_entrypoint_missing', 400, [ 'entrypoint' => 'other.html' ] + $page ],
				[ 'wp_codebox_browser_artifact_path_invalid', 400, $with( [ 'path' => '../x', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_path_invalid', 400, $with( [ 'path' => '/x', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_path_invalid', 400, [ 'root' => 'a/../b' ] + $page ],
				[ 'wp_codebox_browser_artifact_path_duplicate', 400, $with( [ 'path' => 'INDEX.html', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_file_invalid', 400, $with( [ 'path' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_base64_invalid', 400, $with( [ 'path' => 'x', 'content' => '%', 'encoding' => 'base64' ] ) ],
				[ 'wp_codebox_browser_artifact_extension_blocked', 403, $with( [ 'path' => 'x.php', 'content' => 'x' ] ) ],
				[ 'wp_codebox_browser_artifact_file_too_large', 413, $with( [ 'path' => 'x', 'content' => str_repeat( 'x', 5242881 ) ] ) ],
			] as [ $code, $status, $input ] ) {
				$t->error( $code, $status, $t->ability( 'normalize-browser-artifact-bundle', $input ) );
			}
			$facade = WP_Codebox_API::normalize_artifact_bundle( $page );
			$t->same( $done['content_digest'], $t->ok( $facade )['content_digest'] );
			$t->same( 'browser', $t->ok( WP_Codebox_API::persist_artifact( [ 'files' => [ [ 'path' => 'facade.html', 'content' => 'x' ] ] ] ) )['origin'] );
		}
	);
};
