<?php
/**
 * Registers the abilities.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Abilities;

use Closure;
use Throwable;
use WP_Error;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Connector\Scope;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\HiddenPaths;
use WPCodebox\Sentence;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the definition files and hangs each on the one service call that does the
 * work. Nothing but core's own two hooks touches core's registries; without the
 * Abilities API (WordPress before 6.9) those hooks never fire.
 */
final class Registrar {

	/**
	 * Definition files by ability, once they were looked up.
	 *
	 * @var array<string, string>
	 */
	private array $files = [];

	/**
	 * Wires the registrar.
	 *
	 * @param string            $directory    Directory `abilities` of the plugin.
	 * @param SchemaStore       $schemas      Schemas.
	 * @param Capabilities      $capabilities Permission.
	 * @param Closure           $services     Answers the Services; wired when the first ability runs.
	 */
	public function __construct(
		private readonly string $directory,
		private readonly SchemaStore $schemas,
		private readonly Capabilities $capabilities,
		private readonly Closure $services
	) {}

	/** Waits for core's registries. */
	public function register(): void {
		add_action( 'wp_abilities_api_categories_init', [ $this, 'register_categories' ] );
		add_action( 'wp_abilities_api_init', [ $this, 'register_abilities' ] );
		// First of all, so that an answer of another plugin's check is never replaced. WordPress 7.1 and later.
		add_filter( 'wp_ability_validate_input', [ $this, 'allow_missing_fields' ], PHP_INT_MIN, 3 );
	}

	/** Registers the category; the hook may fire twice on multisite. */
	public function register_categories(): void {
		foreach ( require $this->directory . '/categories.php' as $slug => $category ) {
			if ( ! wp_has_ability_category( $slug ) ) {
				wp_register_ability_category( $slug, $category );
			}
		}
	}

	/** Registers every ability that has a definition. */
	public function register_abilities(): void {
		foreach ( array_keys( $this->files() ) as $name ) {
			if ( wp_has_ability( $name ) ) {
				continue;
			}
			$definition = $this->definition( $name );
			wp_register_ability(
				$name,
				[
					'label'               => $definition['label'],
					'description'         => $definition['description'],
					'category'            => 'wp-codebox',
					'input_schema'        => $this->schemas->get( $definition['input_schema'] ),
					'output_schema'       => $this->schemas->any( (array) $definition['output_schema'] ),
					'execute_callback'    => fn( mixed $input = [] ): mixed => $this->shown( $this->execute( $name, $input ) ),
					'permission_callback' => fn( mixed $input = [] ): bool => $this->permits( $definition, $input ),
					'meta'                => [
						'annotations'  => $definition['annotations'],
						'show_in_rest' => true,
						'mcp'          => [
							'public' => $definition['mcp_public'] ?? false,
							'type'   => 'tool',
						],
					],
				]
			);
		}
	}

	/**
	 * Lets input through that only lacks required fields: after the permission check the service
	 * refuses it, with the code of what is missing.
	 *
	 * @param mixed $valid True, or core's refusal.
	 * @param mixed $input Input.
	 * @param mixed $name  Ability, of any plugin.
	 */
	public function allow_missing_fields( mixed $valid, mixed $input, mixed $name ): mixed {
		if ( ! is_wp_error( $valid ) || ! isset( $this->files()[ $name ] ) ) {
			return $valid;
		}
		return true === $this->schemas->check( $this->definition( $name )['input_schema'], $input ) ? true : $valid;
	}

	/**
	 * Whether the current user may use an ability. One with a scope is open to callers that are
	 * trusted with that scope, too.
	 *
	 * @param array<string, mixed> $definition Definition.
	 * @param mixed                $input      Input, valid by the schema but for missing fields.
	 */
	private function permits( array $definition, mixed $input ): bool {
		if ( ! isset( $definition['scope'] ) ) {
			return $this->capabilities->allows( ...(array) $definition['capability'] );
		}
		$claimed = is_array( $input ) ? $input['authorization'] ?? null : null;
		return ( $this->services )()->callers->decide( Scope::from( $definition['scope'] ), $claimed )->authorized;
	}

	/**
	 * An answer as the current user may see it: directories of this host only to those who review
	 * or apply.
	 *
	 * @param array<string, mixed>|WP_Error $answer As it was made.
	 * @return array<string, mixed>|WP_Error
	 */
	private function shown( array|WP_Error $answer ): array|WP_Error {
		if ( $this->capabilities->allows( Capabilities::REVIEW, Capabilities::APPLY ) ) {
			return $answer;
		}
		return ( new HiddenPaths( ( $this->services )()->site ) )->hide( $answer );
	}

	/**
	 * Definition files by ability: `definitions/get-run.php` is `wp-codebox/get-run`. Only a name
	 * that is listed here is ever turned into a path.
	 *
	 * @return array<string, string>
	 */
	private function files(): array {
		if ( [] === $this->files ) {
			foreach ( preg_grep( '/\.php$/D', scandir( $this->directory . '/definitions' ) ) as $file ) {
				$this->files[ 'wp-codebox/' . basename( $file, '.php' ) ] = $this->directory . '/definitions/' . $file;
			}
		}
		return $this->files;
	}

	/**
	 * One definition.
	 *
	 * @param string $name Ability, one of `files()`.
	 * @return array<string, mixed>
	 */
	private function definition( string $name ): array {
		return require $this->files()[ $name ];
	}

	/**
	 * Runs an ability for code of this site: the same schema, the same work and the same
	 * authority as through core, but nobody is asked for a capability.
	 *
	 * @param string $name  Ability.
	 * @param mixed  $input Input as the caller gave it.
	 * @return array<string, mixed>|WP_Error
	 */
	public function run_trusted( string $name, mixed $input ): array|WP_Error {
		if ( ! isset( $this->files()[ $name ] ) ) {
			return Failure::because(
				ErrorCode::ApiAbilityNotSupported,
				/* translators: %s: name of an ability. */
				Sentence::of( __( 'There is no ability "%s"; WP_Codebox_API::public_abilities() lists those there are.', 'codebox' ), sanitize_text_field( $name ) )
			)->to_wp_error();
		}
		try {
			$valid = $this->schemas->check( $this->definition( $name )['input_schema'], $input );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
		if ( is_wp_error( $valid ) ) {
			return Failure::invalid_input( $valid->get_error_message() )->to_wp_error();
		}
		return $this->execute( $name, $input );
	}

	/**
	 * What there is to call.
	 *
	 * @return array<string, array{label: string, description: string, input_schema: string, output_schemas: list<string>, capabilities: list<string>, scopes: list<string>, annotations: array<string, bool>}>
	 *               The answer fits one of the schemas; one of the capabilities or scopes is enough.
	 */
	public function catalogue(): array {
		$rows = [];
		foreach ( array_keys( $this->files() ) as $name ) {
			$definition    = $this->definition( $name );
			$rows[ $name ] = [
				'label'          => $definition['label'],
				'description'    => $definition['description'],
				'input_schema'   => $definition['input_schema'],
				'output_schemas' => (array) $definition['output_schema'],
				'capabilities'   => (array) $definition['capability'],
				'scopes'         => (array) ( $definition['scope'] ?? [] ),
				'annotations'    => $definition['annotations'],
			];
		}
		return $rows;
	}

	/**
	 * Runs an ability. Everything thrown becomes a `WP_Error` with a status: core would
	 * put the text of an exception into the answer.
	 *
	 * @param string $name  Ability.
	 * @param mixed  $input Input, valid by the schema but for missing fields.
	 * @return array<string, mixed>|WP_Error
	 */
	private function execute( string $name, mixed $input ): array|WP_Error {
		try {
			$definition = $this->definition( $name );
			// Before WordPress 7.1 a GET request hands numbers and booleans over as text.
			$typed = rest_sanitize_value_from_schema( (array) $input, $this->schemas->get( $definition['input_schema'] ), 'input' );
			if ( is_wp_error( $typed ) ) {
				return Failure::from_wp_error( $typed, 400 )->to_wp_error();
			}
			return ( $definition['execute'] )( ( $this->services )(), (array) $typed, Authority::User );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
	}
}
