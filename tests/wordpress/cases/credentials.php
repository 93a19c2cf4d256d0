<?php
/**
 * Keys of models and connectors: sources, permissions, and values that appear only in the request.
 */

declare(strict_types=1);

use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\Model\Connectors;
use WPCodebox\Model\Credential;
use WPCodebox\Model\CredentialStatus;
use WPCodebox\Model\Inheritance;
use WPCodebox\Model\Label;
use WPCodebox\Model\ProviderOverview;
use WPCodebox\Services;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$log   = getenv( 'TEST_WORK' ) . '/request.json';
	$value = static fn( string $from ): string => 'sk-' . $from . '-VALUE-0123456789';
	$model = [ 'provider' => 'acme', 'model' => 'm' ];
	if ( ! wp_is_connector_registered( 'acme' ) ) {
		WP_Connector_Registry::get_instance()->register( 'acme', [ 'name' => 'Acme', 'description' => 'x', 'type' => 'ai_provider', 'plugin' => [ 'is_active' => '__return_true' ], 'authentication' => [ 'method' => 'api_key', 'setting_name' => 'connectors_ai_acme_api_key', 'constant_name' => 'ACME_CONSTANT_KEY', 'env_var_name' => 'ACME_API_KEY' ] ] );
	}
	update_site_option( Settings::PROVIDERS, [ 'acme' => [ 'api' => 'openai-chat', 'base_url' => 'https://acme.example/v1', 'connector' => 'acme' ] ] );
	/** Runs a task; returns the ability's result and the request that the plugin sent to the extension (null: none). */
	$run = static function ( array $input ) use ( $t, $log ): array {
		$t->made( 'nothing' );
		is_file( $log ) && unlink( $log );
		putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
		$answer = $t->ability( 'run-agent-task', $input + [ 'goal' => 'Fix it', 'plugin' => 'sample' ] );
		putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
		return [ $answer, is_file( $log ) ? json_decode( (string) file_get_contents( $log ), true ) : null ];
	};
	/** Returns source and value of the model key, from the request that the run sent to the extension. */
	$found = static function ( array $got ): array {
		$name = $got[1]['model']['secret'] ?? '';
		return [ $got[1]['provenance']['model']['credential']['source'] ?? null, array_column( $got[1]['secrets'] ?? [], 'value', 'env' )[ $name ] ?? null ];
	};
	/** Checks that the task was refused before a run started. */
	$refused = static function ( array $got, string $code = 'wp_codebox_provider_credentials_unavailable' ) use ( $t ): WP_Error {
		$t->error( $code, 403, $got[0] );
		$t->same( null, $got[1], 'a run was started' );
		$data = $got[0]->get_error_data();
		$t->same( 'denied' === $data['resolution'] ? 1 : 3, count( $data['hints'] ), 'the number of hints' );
		return $got[0];
	};

	$t->test(
		'a connector key is read from the environment, else from the constant, else from the option',
		static function () use ( $t, $run, $found, $refused, $model, $value ): void {
			$error = $refused( $run( $model ) );
			$t->contains( 'ACME_API_KEY', $error->get_error_message() );
			$t->same( [ 'wp-codebox/provider-credential-resolution/v1', 'missing', true ], [ $error->get_error_data()['schema'], $error->get_error_data()['resolution'], $error->get_error_data()['redacted'] ] );
			update_option( 'connectors_ai_acme_api_key', $value( 'option' ) );
			$t->same( [ 'database', $value( 'option' ) ], $found( $run( $model ) ) );
			define( 'ACME_CONSTANT_KEY', $value( 'constant' ) );
			$t->same( [ 'constant', $value( 'constant' ) ], $found( $run( $model ) ) );
			putenv( 'ACME_API_KEY=' . $value( 'env' ) );
			$t->same( [ 'env', $value( 'env' ) ], $found( $run( $model ) ) );
			putenv( 'ACME_API_KEY= ' );
			$t->same( 'constant', $found( $run( $model ) )[0], 'a blank variable counts as missing' );
		}
	);
	$t->test(
		'a plugin of this site can supply the value of a model key named in secret_env',
		static function () use ( $t, $run, $found, $model, $value ): void {
			$supply = static fn( array $values, array $names ): array => in_array( 'ACME_API_KEY', $names, true ) ? $values + [ 'ACME_API_KEY' => [ 'value' => $value( 'plugin' ) ] ] : $values;
			$t->filtered( 'wp_codebox_secret_values', $supply, static fn() => $t->same( [ 'secret_env', $value( 'plugin' ) ], $found( $run( $model + [ 'secret_env' => [ 'ACME_API_KEY' ] ] ) ) ) );
			// A value whose hosts do not include the provider is not used as its key.
			$bound = static fn( array $values, array $names ): array => [ 'ACME_API_KEY' => [ 'value' => $value( 'bound' ), 'hosts' => [ 'other.example' ] ] ];
			$t->filtered( 'wp_codebox_secret_values', $bound, static fn() => $t->same( [ 'constant', $value( 'constant' ) ], [ ( $got = $run( $model + [ 'secret_env' => [ 'ACME_API_KEY' ] ] ) )[1]['provenance']['model']['credential']['source'], end( $got[1]['secrets'] )['value'] ] ) );
			// The model key needs no hosts; any other secret needs them.
			$other = static fn(): array => [ 'OTHER_KEY' => [ 'value' => 'x' ] ];
			$t->filtered( 'wp_codebox_secret_values', $other, static fn() => $t->error( 'wp_codebox_secret_invalid', 400, $run( $model + [ 'secret_env' => [ 'OTHER_KEY' ] ] )[0] ) );
		}
	);
	$t->test(
		'filters of this site can deny, replace and require credentials of a provider',
		static function () use ( $t, $run, $found, $refused, $model, $value ): void {
			$word = static fn( mixed $answer ): Closure => static fn( array $preflight ): mixed => is_array( $answer ) ? $answer + $preflight : $answer;
			$seen = null;
			$look = static function ( array $preflight, array $requirements, array $selection, array $input, array $inheritance ) use ( &$seen ): array {
				$seen = func_get_args();
				return $preflight;
			};
			$t->filtered( 'wp_codebox_resolve_provider_credentials', $look, static fn() => $t->ok( $run( $model )[0] ), 5 );
			$t->same( [ 'wp-codebox/provider-credential-preflight/v1', 'available', 'wp-codebox/provider-credential-requirements/v1', [ 'ACME_API_KEY' ], 'acme', 'model' ], [ $seen[0]['schema'], $seen[0]['status'], $seen[1]['schema'], $seen[1]['secret_env'], $seen[2]['provider'], $seen[2]['agent'] ] );
			$t->true( ! str_contains( var_export( $seen, true ), $value( 'constant' ) ), 'a hook sees the value' );
			foreach ( [ [ 'status' => 'denied' ], [ 'status' => 'missing' ], [ 'status' => 'perhaps' ], [ 'status' => true ], false, null, 'available' ] as $answer ) {
				$t->filtered( 'wp_codebox_resolve_provider_credentials', $word( $answer ), static fn() => $refused( $run( $model ) ) );
			}
			$leak  = $word( [ 'status' => 'denied', 'diagnostics' => [ [ 'message' => 'because ' . $value( 'constant' ) . " <b>\nis old" ] ] ] );
			$error = $t->filtered( 'wp_codebox_resolve_provider_credentials', $leak, static fn() => $refused( $run( $model ) ) );
			$t->true( ! str_contains( var_export( [ $error->get_error_message(), $error->get_error_data() ], true ), $value( 'constant' ) ), 'the reason of a hook carries the value' );
			$t->contains( 'is old', $error->get_error_message() );
			$t->filtered( 'wp_codebox_resolve_provider_credentials', $word( [ 'status' => 'not-required' ] ), static fn() => $t->same( [ null, null, false ], [ ...$found( $got = $run( $model ) ), isset( $got[1]['secrets'] ) ] ) );
			$t->filtered( 'wp_codebox_resolve_provider_credentials', $word( [ 'secret_values' => [ 'ACME_API_KEY' => $value( 'hook' ) ] ] ), static fn() => $t->same( [ 'hook', $value( 'hook' ) ], $found( $run( $model ) ) ) );
			$t->filtered( 'wp_codebox_resolve_provider_credentials', $word( [ 'status' => 'denied', 'secret_values' => [ 'ACME_API_KEY' => $value( 'hook' ) ] ] ), static fn() => $refused( $run( $model ) ) );
			$needs = static fn( mixed $list ): Closure => static fn( array $requirements ): mixed => is_array( $list ) ? [ 'requirements' => $list ] + $requirements : $list;
			$t->filtered( 'wp_codebox_provider_credential_requirements', $needs( [ [ 'name' => 'GATEWAY_TOKEN', 'required' => true ] ] ), static fn() => $t->contains( 'GATEWAY_TOKEN', $refused( $run( $model ) )->get_error_message() ) );
			$t->filtered( 'wp_codebox_provider_credential_requirements', $needs( [] ), static fn() => $t->same( false, isset( $run( $model )[1]['secrets'] ) ) );
			foreach ( [ null, [ [ 'name' => 'no name' ] ], [ 'x' ] ] as $bad ) {
				$t->filtered( 'wp_codebox_provider_credential_requirements', $needs( $bad ), static fn() => $refused( $run( $model ) ) );
			}
			// A second required key must be available too.
			$two = $needs( [ [ 'name' => 'ACME_API_KEY' ], [ 'name' => 'ACME_SECOND' ] ] );
			$t->filtered( 'wp_codebox_provider_credential_requirements', $two, static fn() => $t->contains( 'ACME_SECOND', $refused( $run( $model ) )->get_error_message() ) );
			$two = $needs( [ [ 'name' => 'ACME_API_KEY' ], [ 'name' => 'ACME_SECOND', 'required' => false ] ] );
			$t->filtered( 'wp_codebox_provider_credential_requirements', $two, static fn() => $t->ok( $run( $model )[0] ) );
		}
	);
	$t->test(
		'a provider row cannot read another secret or send a key to another address',
		static function () use ( $t, $run, $found, $refused, $model, $value ): void {
			$before = [];
			update_option( 'connectors_ai_acme_api_key', $value( 'constant' ) );
			foreach ( [ 'AWS_SECRET_ACCESS_KEY', 'WORDPRESS_DB_PASSWORD', 'OPENAI_API_KEY', 'ANTHROPIC_API_KEY' ] as $name ) {
				$before[ $name ] = getenv( $name );
				putenv( "$name=" . $value( $name ) );
			}
			$row  = static fn( array $fields, string $id = 'evil' ): Closure => static fn(): array => [ $id => $fields + [ 'api' => 'openai-chat', 'base_url' => 'https://evil.example/v1' ], 'acme' => [ 'api' => 'openai-chat', 'base_url' => 'https://acme.example/v1', 'connector' => 'acme' ] ];
			$past = static fn( Closure $rows, Closure $do ): mixed => $t->filtered( 'pre_site_option_wp_codebox_providers', $rows, $do );
			$evil = [ 'provider' => 'evil', 'model' => 'm' ];
			foreach ( [
				[ 'key_env' => 'AWS_SECRET_ACCESS_KEY' ],
				[ 'key_env' => 'WORDPRESS_DB_PASSWORD' ],
				[ 'key_env' => 'AUTH_KEY' ],
				[ 'key_env' => 'OPENAI_API_KEY' ],
				[ 'key_env' => 'ANTHROPIC_API_KEY' ],
				[ 'key_env' => 'ACME_API_KEY' ],
				[ 'connector' => 'openai' ],
				[ 'connector' => 'acme' ],
				[ 'connector' => 'openai', 'base_url' => 'https://api.openai.com.evil.example/v1' ],
				[ 'connector' => 'openai', 'key_env' => 'AWS_SECRET_ACCESS_KEY' ],
			] as $fields ) {
				$said = $past( $row( $fields ), static fn() => $refused( $run( $evil ) )->get_error_message() );
				$t->contains( 'WP_CODEBOX_PROVIDER_KEYS', $said );
				$past( $row( $fields ), static fn() => $t->same( 'denied', ProviderOverview::of( new Settings() )->rows()['evil']['status'] ) );
			}
			// A key with another name is refused for a host that accepts only the key of its connector.
			$past( $row( [ 'key_env' => 'AWS_SECRET_ACCESS_KEY', 'base_url' => 'https://api.openai.com/v1' ] ), static fn() => $refused( $run( $evil ) ) );
			// An inherited key is not sent to another address.
			$past( $row( [ 'key_env' => 'ACME_API_KEY' ] ), static fn() => $refused( $run( $evil + [ 'inherit' => [ 'connectors' => [ 'acme' ] ] ] ) ) );
			// A plugin may supply a key for another address, limited to the hosts it names.
			$supply = static fn( array $hosts ): Closure => static fn(): array => [ 'ACME_API_KEY' => array_filter( [ 'value' => $value( 'plugin' ), 'hosts' => $hosts ] ) ];
			$ask    = static fn( array $hosts ): array => $past( $row( [ 'key_env' => 'ACME_API_KEY' ] ), static fn() => $t->filtered( 'wp_codebox_secret_values', $supply( $hosts ), static fn() => $run( $evil ) ) );
			$t->same( [ 'hook', $value( 'plugin' ) ], $found( $ask( [] ) ) );
			$t->same( [ 'hook', $value( 'plugin' ) ], $found( $ask( [ 'evil.example' ] ) ) );
			$refused( $ask( [ 'acme.example' ] ) );
			// A provider row cannot change the address of a built-in provider.
			$got = $past( $row( [], 'openai' ), static fn() => $run( [ 'provider' => 'openai', 'model' => 'm' ] ) );
			$t->same( [ 'https://api.openai.com/v1', [ 'env', $value( 'OPENAI_API_KEY' ) ] ], [ $got[1]['model']['base_url'] ?? null, $found( $got ) ] );
			// Positive controls: listed hosts get their keys; the setting of php.ini replaces the constant.
			$t->same( $value( 'constant' ), $found( $run( $model ) )[1] );
			$t->same( 'available', ProviderOverview::of( new Settings() )->rows()['acme']['status'] );
			$t->same( $value( 'OPENAI_API_KEY' ), $found( $past( $row( [ 'connector' => 'openai', 'base_url' => 'https://api.openai.com/v2' ] ), static fn() => $run( $evil ) ) )[1] );
			putenv( 'WP_CODEBOX_FAKE_PROVIDER_KEYS=ACME_API_KEY@other.example AWS_SECRET_ACCESS_KEY@evil.example:8443' );
			$refused( $run( $model ) );
			$past( $row( [ 'key_env' => 'AWS_SECRET_ACCESS_KEY' ] ), static fn() => $refused( $run( $evil ) ) );
			$t->same( $value( 'AWS_SECRET_ACCESS_KEY' ), $found( $past( $row( [ 'key_env' => 'AWS_SECRET_ACCESS_KEY', 'base_url' => 'https://evil.example:8443' ] ), static fn() => $run( $evil ) ) )[1] );
			putenv( 'WP_CODEBOX_FAKE_PROVIDER_KEYS' );
			foreach ( $before as $name => $old ) {
				putenv( false === $old ? $name : "$name=$old" );
			}
		}
	);
	$t->test(
		'a filter that reports the status available without a value does not make a key available',
		static function () use ( $t, $run, $refused ): void {
			update_site_option( Settings::PROVIDERS, [ 'acme' => [ 'api' => 'openai-chat', 'base_url' => 'https://acme.example/v1', 'connector' => 'acme' ], 'bare' => [ 'api' => 'openai-chat', 'base_url' => 'https://bare.example', 'key_env' => 'BARE_KEY' ] ] );
			$yes = static fn( array $preflight ): array => [ 'status' => 'available' ] + $preflight;
			$t->filtered( 'wp_codebox_resolve_provider_credentials', $yes, static fn() => $refused( $run( [ 'provider' => 'bare', 'model' => 'm' ] ) ) );
		}
	);
	$t->test(
		'the site can deny its keys to a user, and switching AI off denies them to every user',
		static function () use ( $t, $run, $refused, $model ): void {
			$seen = [];
			$no   = static function ( bool $allowed, string $kind, string $name, int $user ) use ( &$seen ): bool {
				$seen[] = [ $kind, $name, $user > 0 ];
				return false;
			};
			$t->filtered( 'wp_codebox_can_use_credentials', $no, static fn() => $refused( $run( $model ) ), 5 );
			$t->same( [ 'provider', 'acme', true ], $seen[0] );
			$t->filtered( 'wp_codebox_can_use_credentials', static fn(): int => 1, static fn() => $refused( $run( $model ) ) );
			$t->filtered( 'wp_supports_ai', '__return_false', static fn() => $t->contains( 'switched off', $refused( $run( $model ) )->get_error_message() ) );
			$t->ok( $run( $model )[0] );
			$t->filtered( 'wp_supports_ai', '__return_false', static fn() => $t->ok( $run( [ 'agent_command' => 'php agent.php nothing' ] )[0] ) );
		}
	);
	$t->test(
		'the first inherited connector with a provider is used, and an unusable connector refuses the task',
		static function () use ( $t, $run, $refused, $value ): void {
			$inherit = static fn( string ...$names ): array => [ 'model' => 'm', 'inherit' => [ 'connectors' => $names ] ];
			$code    = 'wp_codebox_connector_credentials_unavailable';
			$got     = $run( $inherit( 'acme' ) );
			$t->same( [ 'acme', [ 'acme', 'available' ] ], [ $got[1]['model']['provider'], array_slice( array_values( $got[1]['provenance']['connectors'][0] ), 0, 2 ) ] );
			$t->same( [ 'acme', [ 'presets' => [ 'model' ] ] ], [ ( $got = $run( [ 'agent_command' => 'php agent.php nothing' ] + $inherit( 'acme' ) ) )[1]['model']['provider'], $got[1]['policy']['network'] ], 'a command that inherits a connector gets its model' );
			foreach ( [ 'nobody', 'akismet' ] as $name ) {
				$error = $refused( $run( $inherit( 'acme', $name ) ), $code );
				$t->same( [ $name, 'unresolved' ], [ $error->get_error_data()['connector']['name'], $error->get_error_data()['connector']['status'] ] );
			}
			$resolve = static fn( mixed $spec ): Closure => static fn( array $resolvers ): array => $resolvers + [ 'vault' => $spec ];
			$spec    = [ 'provider' => 'acme', 'model' => 'from-vault', 'secret_env' => [ 'ACME_API_KEY' ], 'secret_values' => [ 'ACME_API_KEY' => $value( 'vault' ) ], 'secret_sources' => [ 'ACME_API_KEY' => 'vault' ] ];
			foreach ( [ $spec, static fn( string $name, array $request, array $input ): array => 'vault' === $name ? $spec : [] ] as $resolver ) {
				$got = $t->filtered( 'wp_codebox_connector_credential_resolvers', $resolve( $resolver ), static fn() => $run( [ 'inherit' => [ 'connectors' => [ 'vault' ] ] ] ) );
				$t->same( [ 'acme', 'from-vault', 'vault', $value( 'vault' ) ], [ $got[1]['model']['provider'], $got[1]['model']['model'], $got[1]['provenance']['model']['credential']['source'], $got[1]['secrets'][0]['value'] ] );
			}
			foreach ( [ 'text', [ 'secret_env' => [ 'ACME_API_KEY' ] ], [ 'secret_env' => [ 'bad name' ] ], [ 'status' => 'denied' ] + $spec, [ 'secret_values' => [ 'ACME_API_KEY' => 7 ] ] + $spec ] as $bad ) {
				$t->filtered( 'wp_codebox_connector_credential_resolvers', $resolve( $bad ), static fn() => $refused( $run( $inherit( 'vault' ) ), $code ) );
			}
			$last = static fn( callable $edit ): Closure => static function ( array $resolution ) use ( $edit ): mixed {
				return $edit( $resolution );
			};
			foreach ( [
				static fn( array $r ): array => array_replace_recursive( $r, [ 'connectors' => [ [ 'credentials' => [ 'status' => 'denied' ] ] ] ] ),
				static fn( array $r ): array => array_replace_recursive( $r, [ 'connectors' => [ [ 'status' => 'unresolved' ] ] ] ),
				static fn( array $r ): array => [ 'connectors' => [] ] + $r,
				static fn( array $r ): array => [ 'settings' => [] ],
				static fn( array $r ): string => 'all',
			] as $edit ) {
				$t->filtered( 'wp_codebox_resolve_inheritance', $last( $edit ), static fn() => $refused( $run( $inherit( 'acme' ) ), $code ) );
			}
			$brought = static fn( array $r ): array => array_replace_recursive( $r, [ 'connectors' => [ [ 'secret_values' => [ 'ACME_API_KEY' => $value( 'last' ) ] ] ] ] );
			$t->filtered( 'wp_codebox_resolve_inheritance', $last( $brought ), static fn() => $t->same( $value( 'last' ), $run( $inherit( 'acme' ) )[1]['secrets'][0]['value'] ) );
			$t->filtered( 'wp_codebox_can_use_credentials', static fn( bool $a, string $kind ): bool => 'connector' !== $kind, static fn() => $refused( $run( $inherit( 'acme' ) ), $code ) );
			// The guest gets a placeholder only for connectors whose resolver names hosts.
			$bound = $resolve( [ 'secret_values' => [ 'TICKET_KEY' => $value( 'ticket' ) ], 'hosts' => [ 'tickets.example' ] ] );
			$got   = $t->filtered( 'wp_codebox_connector_credential_resolvers', $bound, static fn() => $run( [ 'inherit' => [ 'connectors' => [ 'vault', 'acme' ] ], 'model' => 'm' ] ) );
			$t->same( [ 'TICKET_KEY', [ 'tickets.example' ], 'connector-scoped' ], [ $got[1]['secrets'][0]['env'], $got[1]['secrets'][0]['hosts'], $got[1]['policy']['secrets'] ] );
		}
	);
	$t->test(
		'credential values are in the request to the extension and nowhere else',
		static function () use ( $t, $run, $model, $value, $log ): void {
			$secret = $value( 'constant' );
			[ $answer, $request ] = $run( $model + [ 'inherit' => [ 'connectors' => [ 'acme' ] ] ] );
			$t->contains( $secret, (string) json_encode( $request['secrets'] ) );
			unlink( $log );
			$places = [
				'answer' => (string) json_encode( $t->ok( $answer ) ),
				'log'    => (string) json_encode( $t->audited( 50 ) ),
				'events' => (string) json_encode( $t->ok( $t->ability( 'list-run-events', [ 'run_id' => $answer['run']['run_id'] ] ) ) ),
				'run'    => (string) json_encode( $t->ok( $t->ability( 'get-run', [ 'run_id' => $answer['run']['run_id'] ] ) ) ),
				'debug'  => (string) json_encode( apply_filters( 'debug_information', [] ) ),
				'options' => (string) json_encode( $GLOBALS['wpdb']->get_col( "SELECT option_value FROM {$GLOBALS['wpdb']->options} WHERE option_name LIKE '%wp_codebox%'" ) ),
			];
			foreach ( [ $answer['artifacts'], dirname( $answer['artifacts'], 2 ) ] as $directory ) {
				foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $directory, FilesystemIterator::SKIP_DOTS ) ) as $file ) {
					$places[ $file->getPathname() ] = (string) file_get_contents( $file->getPathname() );
				}
			}
			$digest   = ( require WP_PLUGIN_DIR . '/wp-codebox/abilities/manifest.php' )['contract_digest'];
			$services = new Services( new ExtensionGate( \WPCodebox\VERSION, $digest ), new SchemaStore( WP_PLUGIN_DIR . '/wp-codebox/abilities/schemas' ) );
			$made     = $services->runs->prepare( $model + [ 'goal' => 'x', 'plugin' => 'sample' ], Authority::User );
			$t->contains( $secret, (string) json_encode( $made->host['secrets'] ) );
			unset( $made );
			$rows                 = $services->inheritance->resolve( [ 'acme' ], [], [] );
			$places['services']   = print_r( $services, true );
			$places['connectors'] = print_r( $rows, true ) . var_export( $rows, true ) . json_encode( $rows ) . json_encode( array_map( static fn( $row ): array => $row->row(), $rows ) );
			ob_start();
			var_dump( $rows );
			$places['dump'] = (string) ob_get_clean();
			$t->same( [ 'ACME_API_KEY' => $secret ], $rows['acme']->values() );
			foreach ( $places as $place => $text ) {
				$t->true( '' !== $place && ! str_contains( $text, $secret ), "$place holds the value" );
			}
			$t->contains( 'ACME_API_KEY', $places['answer'] );
		}
	);
	$t->test(
		'a credential value does not appear in dumps, serialized data or stack traces',
		static function () use ( $t, $value ): void {
			$credential = new Credential( 'A_KEY', CredentialStatus::Available, 'env', $value( 'sealed' ) );
			$t->same( $value( 'sealed' ), $credential->value() );
			$t->same( null, $credential->as( CredentialStatus::Denied )->value() );
			$text = print_r( $credential, true ) . var_export( $credential, true ) . json_encode( $credential ) . json_encode( (array) $credential );
			try {
				$text .= serialize( $credential );
			} catch ( Throwable $refused ) {
				$text .= $refused;
			}
			$t->contains( 'A_KEY', $text );
			$t->true( ! str_contains( $text, $value( 'sealed' ) ), $text );
			$t->same( 'because [redacted] b is old', Label::clean( "because {$value( 'sealed' )} <b>\n is old", [ $value( 'sealed' ) ] ) );
		}
	);
	$t->test(
		'an unknown connector resolves as missing without a fatal error',
		static function () use ( $t ): void {
			$connectors = new Connectors();
			$t->same( [ false, 'missing', 'missing' ], [ $connectors->has( 'nobody' ), $connectors->get( 'nobody' )->status->value, ( new Inheritance( $connectors ) )->resolve( [ 'nobody' ], [], [] )['nobody']->status->value ] );
			$t->same( [], ( new Inheritance( $connectors ) )->resolve( [], [], [] ) );
			$t->same( [ true, 'available' ], [ $connectors->has( 'acme' ), $connectors->get( 'acme' )->status->value ] );
		}
	);
	$t->test(
		'cleanup: option, provider and connector of these tests are removed',
		static function () use ( $t ): void {
			delete_site_option( Settings::PROVIDERS );
			delete_option( 'connectors_ai_acme_api_key' );
			WP_Connector_Registry::get_instance()->unregister( 'acme' );
			$t->same( [], ( new Settings() )->providers() );
		}
	);
};
