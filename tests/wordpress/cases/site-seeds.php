<?php
/**
 * Site seeds of a task: content of this site in the sandbox.
 */

declare(strict_types=1);

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Native\Run;
use WPCodebox\Run\RunRequest;
use WPCodebox\Services;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$here     = WP_PLUGIN_DIR . '/wp-codebox/abilities';
	$services = new Services( new ExtensionGate( \WPCodebox\VERSION, ( require $here . '/manifest.php' )['contract_digest'] ), new SchemaStore( $here . '/schemas' ) );
	$task     = [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'true' ];
	$seed     = static fn( array $scopes, array $more = [] ): array => [ 'site_seeds' => [ $more + [ 'type' => 'parent_site', 'name' => 'content', 'scopes' => $scopes ] ] ];
	$prepared = static fn( array $input, Authority $authority = Authority::User ): RunRequest => $services->runs->prepare( $input + $task, $authority );
	$refused  = static function ( array $input ) use ( $prepared ): array {
		try {
			$prepared( $input );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			return [ $failure->error_code, $failure->data['field'] ?? null, $failure->getMessage() ];
		}
		throw new RuntimeException( 'not refused: ' . wp_json_encode( $input ) );
	};
	$content  = static fn( RunRequest $request ): array => (array) json_decode( $request->host['resolved_seeds'][0]['content'], true );
	$post     = static fn( string $slug, array $more = [] ): int => wp_insert_post( $more + [ 'post_title' => "Title of $slug", 'post_name' => $slug, 'post_status' => 'publish', 'post_content' => "Text of $slug" ] );

	$t->test(
		'site seeds: the sandbox and its checks have the selected post, term, option and user of this site, and no private data',
		static function () use ( $t, $seed, $post ): void {
			$t->as( 'administrator' );
			$term = wp_insert_term( 'Seeded term', 'category', [ 'slug' => 'seeded-term' ] );
			$id   = $post( 'seed-me', [ 'post_category' => [ $term['term_id'] ] ] );
			$post( 'seed-locked', [ 'post_password' => 'open-sesame' ] );
			$post( 'seed-draft', [ 'post_status' => 'draft' ] );
			$user = wp_insert_user( [ 'user_login' => 'seed-person', 'user_pass' => 'seed-password', 'user_email' => 'seed.person@example.org', 'display_name' => 'Seed Person', 'role' => 'author' ] );
			update_option( 'sample_colours', [ 'first' => 'green' ] );
			file_put_contents(
				WP_PLUGIN_DIR . '/sample/seen.php',
				'<?php
				global $wpdb;
				$post = get_page_by_path( "seed-me", OBJECT, "post" );
				$seen = [
					"post"   => $post ? [ $post->post_title, $post->post_content, get_userdata( $post->post_author )->user_login ] : null,
					"terms"  => $post ? wp_get_post_terms( $post->ID, "category", [ "fields" => "slugs" ] ) : null,
					"others" => [ get_page_by_path( "seed-locked", OBJECT, "post" ), get_posts( [ "name" => "seed-draft", "post_status" => "any" ] ) ],
					"option" => get_option( "sample_colours" ),
					"users"  => array_map( static fn( $user ) => [ $user->user_login, $user->user_email, $user->roles ], get_users( [ "role" => "author" ] ) ),
				];
				if ( "check" === ( $args[0] ?? "" ) ) {
					exit( $post ? 0 : 9 );
				}
				echo "SEEN " . wp_json_encode( $seen ) . " END";'
			);
			$scopes = [
				'posts'         => [ 'slugs' => [ 'seed-me', 'seed-locked', 'seed-draft' ] ],
				'terms'         => [ 'slugs' => [ 'seeded-term' ] ],
				'options'       => [ 'names' => [ 'sample_colours' ] ],
				'users'         => [ 'ids' => [ $user, get_post( $id )->post_author ], 'anonymize' => true ],
				'activePlugins' => true,
			];
			$input  = [ 'goal' => 'Look', 'plugin' => 'sample', 'agent_command' => 'sh -c "wp eval-file seen.php >seen.json"', 'checks' => [ 'wp eval-file seen.php check' ] ];
			$run    = $t->ok( $t->ability( 'run-agent-task', $input + $seed( $scopes ) ) );
			$patch  = (string) file_get_contents( $run['paths']['patch'] );
			$t->true( 1 === preg_match( '/SEEN (\{.*\}) END/', $patch, $found ), 'the agent saw nothing: ' . wp_json_encode( $run['error'] ?? $patch ) );
			$seen = json_decode( $found[1], true );
			$t->same( [ 'Title of seed-me', 'Text of seed-me', 'seeded-administrator-1' ], $seen['post'] );
			$t->same( [ [ 'seeded-term' ], [ null, [] ], [ 'first' => 'green' ] ], [ $seen['terms'], $seen['others'], $seen['option'] ] );
			$t->same( [ [ 'seeded-author-2', 'seeded-author-2@example.org', [ 'author' ] ] ], $seen['users'] );
			$t->same( [ 'passed' ], array_column( $run['checks'], 'status' ) );
			$stored = '';
			foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $run['artifacts'], FilesystemIterator::SKIP_DOTS ) ) as $file ) {
				$stored .= (string) file_get_contents( $file->getPathname() );
			}
			$t->contains( 'activePlugins', $stored );
			foreach ( [ 'Seed Person', 'seed.person@example.org', 'seed-person', 'open-sesame', get_userdata( $user )->user_pass ] as $private ) {
				$t->true( ! str_contains( $stored, $private ), "the bundle has $private" );
			}
			$without = $t->ok( $t->ability( 'run-agent-task', $input ) );
			$t->same( [ 'failed' ], array_column( $without['checks'], 'status' ), 'control: without the seed the check fails' );
		}
	);
	$t->test(
		'site seeds: private data is not in the content that this site passes on, and options that can hold a secret are refused',
		static function () use ( $t, $seed, $prepared, $refused, $content, $post ): void {
			$t->as( 'administrator' );
			$post( 'seed-locked-two', [ 'post_password' => 'open-sesame' ] );
			$id   = wp_insert_user( [ 'user_login' => 'seed-two', 'user_pass' => 'seed-password', 'user_email' => 'two@example.org', 'first_name' => 'Secretname', 'role' => 'author' ] );
			$made = $content( $prepared( $seed( [ 'users' => [ 'ids' => [ $id ], 'anonymize' => true ], 'posts' => [ 'slugs' => [ 'seed-locked-two' ] ] ] ) ) );
			$t->same( [ [ 'id' => $id, 'role' => 'author' ] ], $made['users'] );
			$t->same( [ [], 'wp-codebox/site-seed-fixture/v1' ], [ $made['posts'], $made['schema'] ] );
			foreach ( [ 'admin_email', 'mailserver_pass', 'acme_api_key', 'auth_salt' ] as $name ) {
				update_option( $name, get_option( $name, 'x' ) );
				[ $code, $field, $message ] = $refused( $seed( [ 'options' => [ 'names' => [ $name ] ] ] ) );
				$t->same( [ 'wp_codebox_site_seed_invalid', 'site_seeds[0]' ], [ $code, $field ], $name );
				$t->contains( $name, $message );
			}
			update_option( 'sample_gateway', [ 'title' => 'Pay', 'live' => [ 'secret_key' => 'sk_live_1' ] ] );
			$t->same( 'wp_codebox_site_seed_invalid', $refused( $seed( [ 'options' => [ 'names' => [ 'sample_gateway' ] ] ] ) )[0] );
			update_option( 'sample_gateway', [ 'title' => 'Pay', 'live' => [ 'secret_key' => '', 'mode' => 'test' ] ] );
			$t->same( 'test', $content( $prepared( $seed( [ 'options' => [ 'names' => [ 'sample_gateway', 'no_such_option' ] ] ] ) ) )['options']['sample_gateway']['live']['mode'], 'control: an empty secret' );
			$name = get_option( 'blogname' );
			$t->filtered( 'pre_option_blogname', static fn(): string => 'Filtered', static fn() => $t->same( $name, $content( $prepared( $seed( [ 'options' => [ 'names' => [ 'blogname' ] ] ] ) ) )['options']['blogname'] ) );
		}
	);
	$t->test(
		'site seeds: a wrong seed is refused by its code and field before anything is read',
		static function () use ( $t, $seed, $prepared, $refused ): void {
			$t->as( 'administrator' );
			$t->same( 1, count( $prepared( $seed( [ 'posts' => [ 'maxRecords' => 1 ] ] ) )->host['resolved_seeds'] ), 'control' );
			$t->same( false, isset( $prepared( [ 'site_seeds' => [] ] )->host['resolved_seeds'] ) );
			$posts = [ 'posts' => [ 'maxRecords' => 1 ] ];
			foreach ( [
				[ $seed( $posts, [ 'source' => './x' ] ), 'invalid', '.source' ],
				[ $seed( $posts, [ 'type' => 'fixture' ] ), 'type_invalid', '.type' ],
				[ $seed( $posts, [ 'name' => '../x' ] ), 'name_invalid', '.name' ],
				[ $seed( [ 'activeTheme' => false ] ), 'scopes_missing', '.scopes' ],
				[ $seed( [ 'terms' => [ 'postTypes' => [ 'post' ], 'maxRecords' => 1 ] ] ), 'scope_invalid', '.scopes.terms.postTypes' ],
				[ $seed( [ 'posts' => [ 'statuses' => [ 'any' ] ] ] ), 'scope_unbounded', '.scopes.posts' ],
				[ $seed( [ 'options' => [ 'maxRecords' => 1 ] ] ), 'options_unbounded', '.scopes.options' ],
				[ $seed( [ 'users' => [ 'maxRecords' => 1 ] ] ), 'users_unsafe', '.scopes.users' ],
				[ $seed( [ 'media' => [ 'maxRecords' => 1, 'includeFiles' => true ] ] ), 'media_files_unsupported', '.scopes.media.includeFiles' ],
			] as [ $input, $code, $field ] ) {
				$t->same( [ "wp_codebox_site_seed_$code", "site_seeds[0]$field" ], array_slice( $refused( $input ), 0, 2 ) );
			}
			$t->error( 'wp_codebox_input_invalid', 400, WP_Codebox_API::run_agent_task( [ 'goal' => 'x', 'plugin' => 'sample' ] + $seed( $posts, [ 'colour' => 'red' ] ) ) );
		}
	);
	$t->test(
		'site seeds: the extension takes only as many seeds as a request can hold, each with its content',
		static function () use ( $t, $seed, $prepared ): void {
			$t->as( 'administrator' );
			$request = $prepared( $seed( [ 'posts' => [ 'maxRecords' => 1 ] ] ) );
			$said    = static function ( array $host, string $call = 'validate' ) use ( $request ): ?string {
				try {
					$run = Run::$call( $request->task, $host + $request->host );
					'start' === $call && $run->cancel();
				} catch ( Throwable $thrown ) {
					return Failure::from( $thrown )->error_code;
				}
				return null;
			};
			$row     = static fn( int $bytes ): array => [ 'name' => 'content', 'scopes' => [ 'posts' => [ 'maxRecords' => 1 ] ], 'content' => str_repeat( 'x', $bytes ) ];
			$t->same( null, $said( [ 'resolved_seeds' => [ $row( 3 << 20 ), $row( 3 << 20 ) ] ] ), 'control' );
			$t->same( 'wp_codebox_site_seed_invalid', $said( [ 'resolved_seeds' => [ $row( 3 << 20 ), $row( ( 3 << 20 ) + 1 ) ] ] ) );
			$t->same( null, $said( [ 'resolved_seeds' => array_fill( 0, 25, $row( 9 ) ) ] ), 'control' );
			$t->same( 'wp_codebox_site_seed_invalid', $said( [ 'resolved_seeds' => array_fill( 0, 26, $row( 9 ) ) ] ) );
			$t->same( 'wp_codebox_site_seed_invalid', $said( [ 'resolved_seeds' => [] ], 'start' ), 'a seed without its content' );
			$t->same( null, $said( [], 'start' ), 'control' );
			$t->idle();
		}
	);
	$t->test(
		'site seeds: a user copies only content for which the user has the capability, and the operator all',
		static function () use ( $t, $seed, $prepared, $refused ): void {
			$kinds = [
				'posts'       => [ [ 'maxRecords' => 1 ], 'export' ],
				'terms'       => [ [ 'maxRecords' => 1 ], 'export' ],
				'media'       => [ [ 'maxRecords' => 1 ], 'export' ],
				'users'       => [ [ 'maxRecords' => 1, 'anonymize' => true ], 'list_users' ],
				'options'     => [ [ 'names' => [ 'blogname' ] ], 'manage_options' ],
				'activeTheme' => [ true, 'manage_options' ],
			];
			foreach ( $kinds as $kind => [ $scope, $capability ] ) {
				$t->as( 'editor' );
				$t->same( [ 'wp_codebox_forbidden', "site_seeds[0].scopes.$kind" ], array_slice( $refused( $seed( [ $kind => $scope ] ) ), 0, 2 ) );
				$t->same( true, isset( $prepared( $seed( [ $kind => $scope ] ), Authority::Operator )->host['resolved_seeds'] ), 'control: the operator may' );
				$t->filtered( 'user_has_cap', static fn( array $caps ): array => [ $capability => true ] + $caps, static fn() => $t->same( true, isset( $prepared( $seed( [ $kind => $scope ] ) )->host['resolved_seeds'] ), "control: with $capability" ) );
			}
			$t->as( 'administrator' );
			$t->same( [ [ 'name' => 'content', 'kinds' => [ 'posts' ] ] ], $prepared( $seed( [ 'posts' => [ 'maxRecords' => 1 ] ] ) )->host['provenance']['site_seeds'] );
		}
	);
};
