<?php
/**
 * Creation of browser sessions: facts, ids, references, fields of the input, hooks.
 */

declare(strict_types=1);

use WPCodebox\AuditTrail;
use WPCodebox\Browser\SessionAudit;
use WPCodebox\Browser\SessionStore;
use WPCodebox\ExtensionGate;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Settings;
use WPCodebox\Tests\BrowserAssets;
use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Published;

require_once dirname( __DIR__ ) . '/browser.php';
require_once dirname( __DIR__ ) . '/published.php';

return static function ( Harness $t ): void {
	$facts  = [ 'execution' => 'browser-playground', 'execution_scope' => 'disposable-playground', 'permission_model' => 'runtime-principal' ];
	$name   = 'create-browser-playground-session';
	$create = static fn( array $more = [], string $ability = 'create-browser-playground-session' ): mixed => $t->ability( $ability, $more + [ 'goal' => 'Look' ] );
	$made   = static fn( array $more = [] ): array => $t->ok( $create( $more ) );
	$read   = static fn( array $session ): array => $t->ok( $t->ability( 'hydrate-browser-blueprint-ref', [ 'ref' => $session['blueprint_ref']['ref'] ] ) );
	/** Adds a test that runs with assets. */
	$test   = static fn( string $about, callable $body ) => $t->test( "browser session: $about", static fn() => BrowserAssets::with( $t, $body ) );

	$test(
		'a goal is enough, and the answer has the public form, the facts at both levels and stable ids',
		static function () use ( $t, $name, $made, $facts ): void {
			Published::takes( $t, $name, [ 'goal' => 'Look' ] );
			$one = Published::answers( $t, $name, $made() );
			$t->same( $facts, array_intersect_key( $one, $facts ) );
			$t->same( $facts, array_intersect_key( $one['session'], $facts ) );
			$site = $one['contained_site'];
			$t->same( [ 'ready', 'ready', 'admin', 'browser-contained' ], [ $one['status'], $site['status'], $site['caller_id'], $site['persistence'] ] );
			$t->true( 1 === preg_match( '/^prepared-[0-9a-f]{16}$/D', $site['site_id'] ) && 1 === preg_match( '/^preview-[0-9a-f]{16}$/D', $site['preview_id'] ), 'ids' );
			$hash = $site['source_digest']['value'];
			$t->same( "prepared:{$site['site_id']}:$hash", $one['blueprint_ref']['ref'] );
			$t->same( [ 'cache_key' => $site['site_id'], 'input_hash' => $hash, 'source_digest' => $hash ], $site['recovery']['input'] );
			$two = $made( [ 'goal' => 'Look again', 'orchestrator' => [ 'id' => 'o' ] ] );
			$t->same( [ $site['site_id'], $hash ], [ $two['contained_site']['site_id'], $two['contained_site']['source_digest']['value'] ], 'goal and session are no sources' );
			$t->true( $two['session_id'] !== $one['session_id'] && $two['contained_site']['preview_id'] !== $site['preview_id'], 'the preview belongs to the session' );
			$same = $made( [ 'sandbox_session_id' => $two['session_id'] ] );
			$t->same( $two['contained_site']['preview_id'], $same['contained_site']['preview_id'] );
			$t->true( $made( [ 'blueprint' => [ 'landingPage' => '/x/' ] ] )['contained_site']['site_id'] !== $site['site_id'], 'a blueprint is a source' );
		}
	);
	$test(
		'the caller is the authenticated one, and no claim changes it',
		static function () use ( $t, $made ): void {
			$claim = $made( [ 'authorization' => [ 'schema' => 'x', 'caller' => 'studio-native', 'scope' => 'browser-session:create' ], 'orchestrator' => [ 'id' => 'studio-native' ] ] );
			$t->same( [ 'admin', 'admin' ], [ $claim['contained_site']['caller_id'], $claim['session']['caller_id'] ] );
			$t->same( 'studio-native', $claim['provenance']['authorization']['claimed']['caller'] );
			$t->same( 'o', $made( [ 'orchestrator' => [ 'id' => 'o' ] ] )['session']['orchestrator']['id'] );
		}
	);
	$test(
		'an application password with the scope creates sessions and does nothing else',
		static function () use ( $t, $create ): void {
			add_filter( 'wp_is_application_passwords_available', '__return_true' );
			$known = get_user_by( 'login', 'browser-scoped' );
			$user  = $known ? $known->ID : (int) wp_insert_user( [ 'user_login' => 'browser-scoped', 'user_pass' => wp_generate_password(), 'user_email' => 'bs@example.org', 'role' => 'subscriber' ] );
			$uuid  = WP_Application_Passwords::create_new_application_password( $user, [ 'name' => 'x ' . wp_rand() ] )[1]['uuid'];
			wp_set_current_user( $user );
			try {
				$t->same( 'ability_invalid_permissions', $create()->get_error_code(), 'without a grant' );
				update_site_option( Settings::TRUSTED_CALLERS, [ $uuid => [ 'browser-session:create' ] ] );
				$GLOBALS['wp_rest_application_password_uuid'] = $uuid;
				$t->same( 'application-password:' . $uuid, $t->ok( $create() )['contained_site']['caller_id'] );
				foreach ( [ 'list-artifacts', 'list-runs', 'browser-connector-request', 'import-artifact-bundle' ] as $other ) {
					$t->true( is_wp_error( $t->ability( $other, 'browser-connector-request' === $other ? [ 'connector' => 'x', 'operation' => 'y' ] : [] ) ), $other );
				}
				$phases = $t->ability( 'create-browser-task-contract', [ 'goal' => 'x', 'execute_phases' => true, 'phases' => [ [ 'name' => 'a', 'kind' => 'host-delegation' ] ] ] );
				$t->error( 'wp_codebox_input_invalid', 400, $phases );
				$mutation = $t->ability( 'browser-contained-site-sync-apply', [ 'allow_host_mutation' => true ] );
				$t->error( 'wp_codebox_input_invalid', 400, $mutation );
			} finally {
				$GLOBALS['wp_rest_application_password_uuid'] = null;
				delete_site_option( Settings::TRUSTED_CALLERS );
				remove_filter( 'wp_is_application_passwords_available', '__return_true' );
			}
		}
	);
	$test(
		'its beginning and its end are in the audit log, and without a record there is no session',
		static function () use ( $t, $create, $made ): void {
			$last    = static fn(): array => array_intersect_key( $t->audited()[0], array_flip( [ 'event', 'status', 'action', 'source', 'authorization' ] ) );
			$session = $made( [ 'roots' => [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] ] );
			$source  = [ 'session_id' => $session['session_id'], 'site_id' => $session['contained_site']['site_id'], 'baseline' => $session['session']['roots'], 'expires_at' => $session['session']['expires_at'] ];
			$t->same( [ 'event' => 'browser-session', 'status' => 'success', 'action' => 'create', 'source' => $source, 'authorization' => $session['provenance']['authorization'] ], $last() );
			$t->same( [ 'plugins/sample' ], array_column( $source['baseline'], 'target' ) );
			$t->ok( $t->ability( 'destroy-browser-contained-site-session', [ 'contained_site' => $session['contained_site'] ] ) );
			$t->same( [ 'event' => 'browser-session', 'status' => 'success', 'action' => 'destroy', 'source' => $source ], $last() );
			putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN=1' );
			try {
				$t->error( 'wp_codebox_audit_failed', 500, $create( [ 'sandbox_session_id' => 'not-recorded' ] ) );
			} finally {
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN' );
			}
			$t->error( 'wp_codebox_browser_session_unknown', 404, $t->ability( 'persist-browser-artifact', [ 'session_id' => 'not-recorded', 'files' => [ [ 'path' => 'plugins/sample/x.txt', 'content' => 'x' ] ] ] ) );
			// A site whose extension is missing or does not fit has no log.
			$number = $t->audited()[0]['seq'];
			$site   = new Site( new InstalledCode() );
			( new SessionAudit( new ExtensionGate( '0.0.0', '' ), new AuditTrail( $site ) ) )->ended( ( new SessionStore() )->get( $made()['session_id'] ) );
			$t->same( $number + 1, $t->audited()[0]['seq'], 'only the creation is recorded' );
		}
	);
	$test(
		'code, files and steps of the input are in the blueprint, in order, and its links belong to the session',
		static function () use ( $t, $made, $read ): void {
			$session = $made(
				[
					'blueprint'              => [ 'landingPage' => '/a/', 'constants' => [ 'A' => 1 ], 'siteOptions' => [ 'blogname' => 'B' ], 'plugins' => [ 'host-plugin' ], 'steps' => [ null, [ 'step' => 'mkdir', 'path' => '/wordpress/one' ] ] ],
					'post_runtime_blueprint' => [ 'steps' => [ [ 'step' => 'mkdir', 'path' => '/wordpress/last' ] ] ],
					'roots'                  => [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ],
					'runtime'                => [
						'filesystem_overlays' => [ [ 'target' => 'wp-content/x.txt', 'content' => 'x', 'overwrite' => true ], [ 'target' => '/wordpress/y.bin', 'content_base64' => base64_encode( "\xff\x00" ), 'overwrite' => false ] ],
						'bootstrap'           => [ [ 'step' => 'runPHP', 'code' => '<?php echo 1;' ] ],
						'mu_plugins'          => [ [ 'slug' => 'own', 'content' => '<?php // own' ] ],
					],
					'artifact_files'         => [ [ 'path' => 'report/a.json', 'content' => '{}', 'kind' => 'report' ] ],
					'agent_bundles'          => [ [ 'slug' => 'helper', 'bundle' => [ 'a' => 1 ] ] ],
					'landing_page'           => '/wp-admin/',
				]
			);
			$read      = $read( $session );
			$blueprint = $read['blueprint'];
			$paths     = array_map( static fn( array $step ): string => $step['step'] . ' ' . ( $step['path'] ?? $step['pluginPath'] ?? '' ), $blueprint['steps'] );
			$t->same(
				[
					'defineWpConfigConsts ',
					'setSiteOptions ',
					'mkdir /wordpress/one',
					'writeFile /wordpress/wp-content/x.txt',
					'runPHP ',
					'writeFile /wordpress/wp-content/mu-plugins/own.php',
					'writeFile /wordpress/wp-content/uploads/wp-codebox/artifacts/report/a.json',
					'writeFile /wordpress/wp-content/uploads/wp-codebox/agent-bundles/0-helper.json',
					'activatePlugin sample/sample.php',
					'activatePlugin host-plugin/host-plugin.php',
					'runPHP ',
					'mkdir /wordpress/last',
					'mkdir /tmp/wp-codebox',
					'writeFile /tmp/wp-codebox/task.json',
					'writeFile /tmp/wp-codebox/runner.php',
				],
				$paths
			);
			$t->same( '/wp-admin/', $blueprint['landingPage'] );
			$t->same( [ 'plugins/sample', 'plugins/host-plugin' ], array_column( $blueprint['codebox']['roots'], 'target' ) );
			$t->contains( $session['session_id'], $blueprint['codebox']['core']['url'] );
			$t->same( [ [ 'target' => 'plugins/sample', 'archive' => hash( 'sha256', 'sample' ) ], [ 'target' => 'plugins/host-plugin', 'archive' => hash( 'sha256', 'host-plugin' ) ] ], $session['session']['roots'] );
			$t->same( [ 'report/a.json', hash( 'sha256', '{}' ) ], [ $session['artifact_refs'][0]['path'], $session['artifact_refs'][0]['sha256'] ] );
			$task = json_decode( $blueprint['steps'][13]['data'], true );
			$t->same( [ 'Look', $session['session_id'], $session['session']['principal'] ], [ $task['task']['goal'], $task['session_id'], $task['principal'] ] );
			Published::answers( $t, 'hydrate-browser-blueprint-ref', $read );
		}
	);
	$test(
		'what can have no effect in a browser is refused by its name, and its empty value is accepted',
		static function () use ( $t, $create ): void {
			foreach ( [
				[ 'wp_codebox_input_invalid', 400, 'staged_files', [ 'staged_files' => [ [ 'source' => '/etc/passwd', 'target' => 'x' ] ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'secret_env', [ 'secret_env' => [ 'KEY' ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'parent_tool_bridge', [ 'parent_tool_bridge' => [ 'a' => 1 ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'inherit.settings', [ 'inherit' => [ 'settings' => [ 'a' ] ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'agent_bundles[0].source', [ 'agent_bundles' => [ [ 'source' => '/x' ] ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'runtime.filesystem_overlays[0].target', [ 'runtime' => [ 'filesystem_overlays' => [ [ 'target' => '/etc/passwd', 'content' => 'x', 'overwrite' => true ] ] ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'runtime.filesystem_overlays[0].target', [ 'runtime' => [ 'filesystem_overlays' => [ [ 'target' => '/wordpress/../etc/x', 'content' => 'x', 'overwrite' => true ] ] ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'artifact_files[0].path', [ 'artifact_files' => [ [ 'path' => '../x', 'content' => 'x' ] ] ] ],
				[ 'wp_codebox_input_invalid', 400, 'runtime.prepared.cache_key', [ 'runtime' => [ 'prepared' => [ 'cache_key' => '../x' ] ] ] ],
				[ 'wp_codebox_browser_runner_path_invalid', 400, 'browser_runner.task_path', [ 'browser_runner' => [ 'task_path' => '/etc/task.json' ] ] ],
				[ 'wp_codebox_browser_step_unsupported', 422, 'blueprint.steps[1]', [ 'blueprint' => [ 'steps' => [ [ 'step' => 'login' ], [ 'step' => 'runSql' ] ] ] ] ],
				[ 'wp_codebox_browser_step_unsupported', 422, 'blueprint.extraLibraries', [ 'blueprint' => [ 'extraLibraries' => [ 'wp-cli' ] ] ] ],
				[ 'wp_codebox_browser_runtime_component_unresolved', 422, 'runtime.plugins[0]', [ 'runtime' => [ 'plugins' => [ 'not-here' ] ] ] ],
				[ 'wp_codebox_browser_runtime_component_unresolved', 422, 'runtime.plugins[0]', [ 'runtime' => [ 'plugins' => [ '../../../etc' ] ] ] ],
				[ 'wp_codebox_browser_plugin_host_not_allowed', 403, 'browser_plugins[0].url', [ 'browser_plugins' => [ [ 'slug' => 'x', 'url' => 'https://downloads.wordpress.org/x.zip' ] ] ] ],
				[ 'wp_codebox_browser_url_insecure', 400, 'browser_plugins[0].url', [ 'browser_plugins' => [ [ 'slug' => 'x', 'url' => 'http://downloads.wordpress.org/x.zip' ] ] ] ],
				[ 'wp_codebox_browser_url_invalid', 400, 'playground.remote_url', [ 'playground' => [ 'remote_url' => 'javascript:alert(1)' ] ] ],
				[ 'wp_codebox_browser_url_invalid', 400, 'playground.remote_url', [ 'playground' => [ 'remote_url' => 'https://localhost:1*/remote.html' ] ] ],
				[ 'wp_codebox_browser_url_invalid', 400, 'playground.remote_url', [ 'playground' => [ 'remote_url' => 'https://localhost:+443/remote.html' ] ] ],
				[ 'wp_codebox_browser_url_invalid', 400, 'playground.remote_url', [ 'playground' => [ 'remote_url' => 'https://localhost:0443/remote.html' ] ] ],
				[ 'wp_codebox_browser_url_invalid', 400, 'playground.remote_url', [ 'playground' => [ 'remote_url' => 'https://localhost:/remote.html' ] ] ],
				[ 'wp_codebox_browser_url_insecure', 400, 'playground.remote_url', [ 'playground' => [ 'remote_url' => 'http://example.org/remote.html' ] ] ],
				[ 'wp_codebox_browser_origin_not_allowed', 403, 'playground.client_module_url', [ 'playground' => [ 'client_module_url' => 'https://playground.wordpress.net/client/index.js' ] ] ],
				[ 'wp_codebox_task_missing', 400, 'goal', [ 'goal' => ' ' ] ],
			] as [ $code, $status, $field, $input ] ) {
				$refused = $create( $input );
				$t->error( $code, $status, $refused );
				$t->same( $field, $refused->get_error_data()['field'] ?? null, $refused->get_error_message() );
			}
			$t->ok( $create( [ 'staged_files' => [], 'secret_env' => [], 'parent_tool_bridge' => [], 'playground' => [ 'remote_url' => 'http://localhost/assets/remote.html' ], 'browser_plugins' => [ [ 'slug' => 'sample' ] ], 'runtime' => [ 'plugins' => [ [ 'slug' => 'sample', 'activate' => false ] ], 'prepared' => [ 'cache_key' => 'mine', 'input_hash' => str_repeat( 'a', 64 ) ] ] ] ) );
		}
	);
	$test(
		'each field that the comparison with the public contract lists as refused is refused by its name',
		static function () use ( $t, $made ): void {
			$listed  = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/tests/conformance/public/differences.json' ), true )['refused_inputs'];
			$rows    = array_map( static fn( string $name ): array => explode( ' ', $name ), array_merge( ...array_column( $listed, 'names' ) ) );
			$rows    = array_values( array_filter( $rows, static fn( array $row ): bool => str_contains( $row[0], 'browser' ) ) );
			$values  = [ 'staged_files' => [ [ 'source' => '/etc/passwd', 'target' => 'x' ] ], 'secret_env' => [ 'KEY' ], 'parent_tool_bridge' => [ 'a' => 1 ], 'runtime_profile' => 'x', 'allow_host_mutation' => true ];
			$site    = array_intersect_key( $made()['contained_site'], array_flip( [ 'site_id', 'source_digest' ] ) );
			$inputs  = [ 'open-browser-contained-site' => $site, 'apply-browser-contained-site-plan' => $site + [ 'plan' => [ 'operations' => [] ] ], 'open-or-create-browser-contained-site' => [ 'goal' => 'Look', 'mode' => 'prepare-new' ] ];
			$refused = 0;
			foreach ( $rows as [ $ability, $field ] ) {
				$input  = $inputs[ $ability ] ?? [ 'goal' => 'Look' ];
				$answer = $t->ability( $ability, $input + [ $field => $values[ $field ] ] );
				$error  = is_wp_error( $answer ) ? [ 'code' => $answer->get_error_code(), 'message' => $answer->get_error_message() ] : $answer['error'] ?? [];
				$t->same( [ 'wp_codebox_input_invalid', true ], [ $error['code'] ?? '', str_contains( $error['message'] ?? '', $field ) ], "$ability $field" );
				$t->ok( $t->ability( $ability, $input ) );
				++$refused;
			}
			$t->same( 17, $refused );
		}
	);
	$test(
		'an outside engine needs the permission of the site, and gets no link to files of this site',
		static function () use ( $t, $made, $read, $create ): void {
			$outside = [ 'playground' => [ 'client_module_url' => 'https://play.example/client.js', 'remote_url' => 'https://play.example/remote.html' ] ];
			$allowed = static fn( array $origins, string $field, string $url ): array => [ ...$origins, 'https://play.example' ];
			$session = $t->filtered( 'wp_codebox_browser_playground_allowed_origins', $allowed, static fn(): array => $made( $outside ) );
			$t->same( 'https://play.example/remote.html', $session['preview_boot']['remote_url'] );
			$t->same( false, isset( $read( $session )['blueprint']['codebox'] ) );
			$refused = $t->filtered( 'wp_codebox_browser_playground_allowed_origins', $allowed, static fn(): mixed => $create( $outside + [ 'roots' => [ [ 'kind' => 'plugin', 'slug' => 'sample' ] ] ] ) );
			$t->error( 'wp_codebox_input_invalid', 400, $refused );
			$t->same( 'roots', $refused->get_error_data()['field'] );
			$t->same( true, isset( $read( $made( [ 'blueprint' => [ 'landingPage' => '/own/' ] ] ) )['blueprint']['codebox'] ), 'control' );
		}
	);
	$test(
		'a runtime that is not kept comes with the blueprint itself and cannot be recovered',
		static function () use ( $t, $made ): void {
			$session = $made( [ 'runtime' => [ 'prepared' => [ 'cache' => false ] ], 'landing_page' => '/unkept/' ] );
			$t->same( [ 'disabled', false, true ], [ $session['contained_site']['status'], $session['blueprint_ref']['hydratable'], isset( $session['preview_boot']['blueprint']['codebox'] ) ] );
			$t->error( 'wp_codebox_browser_blueprint_ref_cache_miss', 409, $t->ability( 'hydrate-browser-blueprint-ref', [ 'ref' => $session['blueprint_ref']['ref'] ] ) );
			$kept = $made( [ 'landing_page' => '/kept/' ] );
			$t->same( [ true, false ], [ $kept['blueprint_ref']['hydratable'], isset( $kept['preview_boot']['blueprint'] ) ], 'control' );
		}
	);
	$test(
		'preview_only has no task and no runner, and a missing connector blocks the session',
		static function () use ( $t, $made, $read ): void {
			$session = $made( [ 'preview_only' => true, 'runtime' => [ 'prepared' => [ 'cache_key' => 'only' ] ] ] );
			$t->same( [ true, false, [] ], [ $session['preview_only'], isset( $session['session']['runner'] ), $read( $session )['blueprint']['steps'] ] );
			$blocked = $made( [ 'inherit' => [ 'connectors' => [ 'no-such' ] ] ] );
			$t->same( [ 'blocked', [ 'connectors' ], 'wp_codebox_browser_session_prerequisites_missing' ], [ $blocked['status'], $blocked['runtime_readiness']['missing'], $blocked['error']['code'] ] );
			Published::answers( $t, 'create-browser-playground-session', $blocked );
		}
	);
	$test(
		'hooks shape the answer and cannot change ids, facts or reference',
		static function () use ( $t, $made ): void {
			$bend    = static fn( array $dto ): array => [ 'session_id' => 'x', 'execution' => 'host', 'own' => 1, 'blueprint_ref' => [] ] + $dto;
			$session = $t->filtered( 'wp_codebox_browser_session_product_dto', $bend, static fn(): array => $made() );
			$t->same( [ 1, 'browser-playground', true ], [ $session['own'], $session['execution'], 'x' !== $session['session_id'] ] );
			$session = $t->filtered( 'wp_codebox_browser_preview_boot_config', static fn( array $config ): array => [ 'remote_url' => 'https://evil.example/', 'own' => 2 ] + $config, static fn(): array => $made() );
			$t->same( [ 2, 'http://localhost/assets/remote.html' ], [ $session['preview_boot']['own'], $session['preview_boot']['remote_url'] ] );
			$session = $t->filtered( 'wp_codebox_browser_ready_to_code_requirements', static fn( array $all ): array => $all + [ 'database' => false ], static fn(): array => $made() );
			$t->same( [ 'database' ], $session['signals']['ready_to_code']['missing'] );
			$session = $t->filtered( 'wp_codebox_browser_prepared_runtime_cache_ttl', static fn(): int => 120, static fn(): array => $made( [ 'debug' => [ 'on' => true ] ] ) );
			$t->same( 120, $session['diagnostics']['expires_after'] );
			$raw = $made( [ 'include_internal_browser_session' => true ] );
			$t->same( [ 'wp-codebox/browser-playground-session/v1', true ], [ $raw['schema'], isset( $raw['recipe']['blueprint'] ) ] );
			$t->same( $raw['session_id'], get_transient( 'wp_codebox_browser_session_evidence_' . $raw['evidence_ref']['id'] )['session_id'] );
		}
	);
	$test(
		'task and materializer contracts list their phases, and host delegation runs only when asked for',
		static function () use ( $t, $create ): void {
			$input = [ 'phases' => [ [ 'name' => 'work', 'kind' => 'agent' ], [ 'name' => 'host', 'kind' => 'host-delegation' ] ], 'materializers' => [ [ 'label' => 'Files' ] ] ];
			$task  = Published::answers( $t, 'create-browser-task-contract', $create( $input, 'create-browser-task-contract' ) );
			$t->same( [ [ 'work', 'pending' ], [ 'host', 'pending' ], [ 'materializer-1', 'pending' ] ], array_map( static fn( array $phase ): array => [ $phase['name'], $phase['status'] ], $task['phases'] ) );
			$run = $t->ok( $create( $input + [ 'execute_phases' => true ], 'create-browser-task-contract' ) );
			$t->same( [ 'pending', 'unavailable' ], array_slice( array_column( $run['phases'], 'status' ), 0, 2 ) );
			$t->error( 'wp_codebox_input_invalid', 400, $create( [ 'phases' => [ [ 'name' => 'a' ], [ 'name' => 'a' ] ] ], 'create-browser-task-contract' ) );
			$files = Published::answers( $t, 'create-browser-materializer-contract', $create( [], 'create-browser-materializer-contract' ) );
			$t->same( [ 'materializer', 'wp-codebox/browser-materializer-product-dto/v1' ], [ $files['phases'][0]['kind'], $files['schema'] ] );
		}
	);
	$t->test(
		'browser session: wp codebox browser-session create makes one for the user, and says what is missing without assets',
		static function () use ( $t ): void {
			$mu   = WPMU_PLUGIN_DIR . '/browser-assets.php';
			$call = static fn(): array => $t->wp( [ 'codebox', 'browser-session', 'create', '--user=admin', '--goal=Look', '--roots=[{"kind":"plugin","slug":"sample"}]', '--preview-only' ] );
			[ $code, , $err ] = $call();
			$t->same( 1, $code );
			$t->contains( 'wp_codebox_browser_assets_missing', $err );
			file_put_contents( $mu, '<?php add_filter( "wp_codebox_browser_session_assets", static function () { require_once ' . var_export( dirname( __DIR__ ) . '/browser.php', true ) . '; return new WPCodebox\\Tests\\BrowserAssets(); } );' );
			try {
				[ $code, $out, $err ] = $call();
			} finally {
				unlink( $mu );
			}
			$t->same( 0, $code, $err );
			$made = json_decode( $out, true );
			$t->same( [ 'admin', true, 'plugins/sample' ], [ $made['contained_site']['caller_id'], $made['preview_only'], $made['session']['roots'][0]['target'] ] );
		}
	);
	$t->test(
		'browser session: without assets every way to make one says what is missing',
		static function () use ( $t, $create ): void {
			$t->as( 'administrator' );
			foreach ( [ 'create-browser-playground-session', 'create-browser-contained-site-session', 'create-browser-task-contract', 'create-browser-materializer-contract' ] as $ability ) {
				$t->error( 'wp_codebox_browser_assets_missing', 503, $create( [], $ability ) );
			}
			$facts = static fn(): array => [ WP_Codebox_API::runtime_descriptor()['readiness']['browserRuntime'], array_column( WP_Codebox_API::runtime_descriptor()['runtimeServices'], 'status', 'id' )['browser-sessions'] ];
			$t->same( [ false, 'unavailable' ], $facts() );
			BrowserAssets::with( $t, static fn() => $t->same( [ true, 'ready' ], $facts() ) );
			BrowserAssets::with( $t, static fn() => $t->ok( $create() ) );
		}
	);
};
