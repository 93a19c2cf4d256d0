<?php
/**
 * Public filters and actions: when each runs, with which arguments, and that permission filters only restrict.
 */

declare(strict_types=1);

use WPCodebox\Capabilities;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$log = getenv( 'TEST_WORK' ) . '/hooks-request.json';
	$run = static function ( array $input = [] ) use ( $t, $log ): array {
		is_file( $log ) && unlink( $log );
		putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
		$answer = $t->made( 'nothing', $input );
		putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
		return [ $answer, (array) json_decode( (string) file_get_contents( $log ), true ) ];
	};

	$t->test(
		'a permission filter that returns true where the capability says no changes nothing and gets a notice',
		static function () use ( $t ): void {
			$capabilities = new Capabilities();
			$editor       = get_user_by( 'login', 'editor' )->ID;
			$t->same( true, $t->filtered( 'wp_codebox_can_run_agent_task', '__return_true', static fn(): bool => $capabilities->grants( 1, Capabilities::RUN ) ) );
			$t->same( [], $t->widened, 'a callback that repeats the capability is in order' );
			$t->same( false, $t->filtered( 'wp_codebox_can_run_agent_task', '__return_true', static fn(): bool => $capabilities->grants( $editor, Capabilities::RUN ) ) );
			$t->same( [ 'wp_codebox_can_run_agent_task' ], $t->widened );
			$t->widened = [];
			$can        = apply_filters( 'wp_codebox_pending_apply_artifact_handlers', [] )['wp_codebox_apply_back']['can_resolve'];
			$t->same( false, $t->filtered( 'wp_codebox_can_resolve_pending_apply_artifact', '__return_true', static fn(): bool => $can( [], 'accepted', $editor ) ) );
			$t->same( [ 'wp_codebox_can_resolve_pending_apply_artifact' ], $t->widened );
			$t->widened = [];
			$t->same( [], $t->filtered( 'wp_codebox_trusted_keys', static fn(): array => [ str_repeat( 'a', 64 ) ], static fn(): array => ( new Settings() )->trusted_keys() ) );
			$t->same( [ 'wp_codebox_trusted_keys' ], $t->widened );
			$t->widened = [];
			$t->same( [], $t->filtered( 'wp_codebox_trusted_browser_session_callers', static fn(): array => [ 'my-host' => [ 'artifact:write' ] ], static fn(): array => ( new Settings() )->trusted_callers() ) );
			$t->same( [ 'wp_codebox_trusted_browser_session_callers' ], $t->widened );
		}
	);
	$t->test(
		'the filters of trusted callers and of the artifacts root get the input of the ability',
		static function () use ( $t ): void {
			$seen = [];
			$note = static function ( mixed ...$arguments ) use ( &$seen ): mixed {
				$seen[] = $arguments;
				return $arguments[0];
			};
			$t->filtered( 'wp_codebox_trusted_browser_session_callers', $note, static fn() => ( new Settings() )->trusted_callers( [ 'caller' => 'x' ], [ 'connector' => 'y' ] ) );
			$t->same( [ [ [], [ 'caller' => 'x' ], [ 'connector' => 'y' ] ] ], $seen );
			$seen = [];
			$t->as( 'administrator' );
			$t->ok( $t->filtered( 'wp_codebox_artifacts_root', $note, static fn(): mixed => $t->ability( 'list-artifacts', [ 'page' => 1 ] ) ) );
			$t->same( [ 'page' => 1 ], $seen[0][1] );
		}
	);
	$t->test(
		'the filter of default secrets is asked when the task names no secret and inherits no connector',
		static function () use ( $t, $run ): void {
			$values = static fn( array $values, array $names ): array => $values + array_fill_keys( $names, [ 'value' => 'value-of-a-secret', 'hosts' => [ 'api.example.org' ] ] );
			$given  = static fn( array $input ): array => $t->filtered(
				'wp_codebox_default_secret_env',
				static fn(): array => [ 'SITE_TOKEN', 7 ],
				static fn(): array => $t->filtered( 'wp_codebox_secret_values', $values, static fn(): array => array_column( $run( $input )[1]['secrets'] ?? [], 'env' ) )
			);
			$t->same( [ 'SITE_TOKEN' ], $given( [] ) );
			$t->same( [ 'OWN_TOKEN' ], $given( [ 'secret_env' => [ 'OWN_TOKEN' ] ] ) );
			$t->same( [], array_column( $run()[1]['secrets'] ?? [], 'env' ), 'control: without the filter' );
		}
	);
	$t->test(
		'the filter of default components adds installed plugins, and a contract of the same slug replaces one',
		static function () use ( $t, $run ): void {
			$slugs = static fn( array $input = [] ): array => array_map( static fn( array $row ): array => [ $row['slug'], $row['load_as'] ], $run( $input )[1]['components'] ?? [] );
			$add   = static fn( array $slugs ): array => [ ...$slugs, 'host-plugin', 5 ];
			$t->same( [ [ 'host-plugin', 'mu-plugin' ] ], $t->filtered( 'wp_codebox_agent_runtime_default_components', $add, $slugs ) );
			$contract = [ 'component_contracts' => [ [ 'slug' => 'host-plugin', 'loadAs' => 'plugin' ] ] ];
			$t->same( [ [ 'host-plugin', 'plugin' ] ], $t->filtered( 'wp_codebox_agent_runtime_default_components', $add, static fn(): array => $slugs( $contract ) ) );
			$t->same( [], $slugs(), 'control: without the filter' );
			$t->error( 'wp_codebox_component_path_missing', 400, $t->filtered( 'wp_codebox_agent_runtime_default_components', static fn(): array => [ 'no-such-plugin' ], static fn(): mixed => $t->ability( 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'true' ] ) ) );
		}
	);
	$t->test(
		'the filter of the resolved tool policy supplies a policy when nothing else does',
		static function () use ( $t ): void {
			$choice = new WPCodebox\Run\ToolChoice();
			$policy = [ 'schema' => 'wp-codebox/sandbox-tool-policy/v1', 'version' => 1, 'tools' => [] ];
			$given  = static fn( array $input ): mixed => $t->filtered( 'wp_codebox_resolved_sandbox_tool_policy', static fn(): array => $policy, static fn(): mixed => $choice->resolve( $input )['policy'] );
			$t->same( $policy, $given( [ 'goal' => 'x' ] ) );
			$t->same( [ 'own' => true ], $given( [ 'sandbox_tool_policy' => [ 'own' => true ] ] ) );
			$t->same( null, $choice->resolve( [ 'goal' => 'x' ] )['policy'], 'control: without the filter' );
		}
	);
	$t->test(
		'docs/hooks.md lists every hook of this plugin, and none that it does not have',
		static function () use ( $t ): void {
			$used = [];
			foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( WP_PLUGIN_DIR . '/wp-codebox', FilesystemIterator::SKIP_DOTS ) ) as $file ) {
				if ( 'php' === $file->getExtension() && preg_match_all( '/(?:apply_filters|do_action)\(\s*\'(wp_codebox_\w+)\'|const HOOK = \'(wp_codebox_\w+)\'/', (string) file_get_contents( (string) $file ), $found ) ) {
					array_push( $used, ...array_filter( [ ...$found[1], ...$found[2] ] ) );
				}
			}
			[ $first, $rest ] = explode( '## Hooks without a meaning here', (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/docs/hooks.md' ) );
			preg_match_all( '/^\| (?:action )?`(wp_codebox_\w+)`/m', $first, $listed );
			preg_match_all( '/^\|([^|]*)/m', $rest, $columns );
			preg_match_all( '/`(wp_codebox_\w+)`/', implode( $columns[1] ), $without );
			$used = array_unique( [ ...$used, 'wp_codebox_pending_apply_artifact_handlers' ] );
			$t->same( [], array_values( array_diff( $used, $listed[1] ) ), 'not listed' );
			$t->same( [], array_values( array_diff( $listed[1], $used ) ), 'listed, but not in the plugin' );
			$t->same( [], array_values( array_intersect( $without[1], $used ) ), 'listed as without a meaning, but in the plugin' );
		}
	);
};
