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
 * Reads the definition files and connects each ability to the service method that implements it. Registration
 * happens only in the two hooks of the Abilities API; where this API is missing (WordPress before 6.9), they
 * never fire.
 */
final class Registrar {

	/**
	 * Paths of the definition files by ability name, filled on first use.
	 *
	 * @var array<string, string>
	 */
	private array $files = [];

	/**
	 * Creates the registrar with its dependencies.
	 *
	 * @param string            $directory    Directory `abilities` of the plugin.
	 * @param SchemaStore       $schemas      Loader of the JSON schemas.
	 * @param Capabilities      $capabilities Permission checks of the user.
	 * @param Closure           $services     Returns the Services; called when the first ability runs.
	 */
	public function __construct(
		private readonly string $directory,
		private readonly SchemaStore $schemas,
		private readonly Capabilities $capabilities,
		private readonly Closure $services
	) {}

	/** Registers callbacks for the hooks of the Abilities API. */
	public function register(): void {
		add_action( 'wp_abilities_api_categories_init', [ $this, 'register_categories' ] );
		add_action( 'wp_abilities_api_init', [ $this, 'register_abilities' ] );
		// Minimum priority: this callback runs before those of other plugins, so it never replaces their
		// results. The filter exists since WordPress 7.1.
		add_filter( 'wp_ability_validate_input', [ $this, 'allow_missing_fields' ], PHP_INT_MIN, 3 );
	}

	/** Registers the ability category; on multisite the hook may fire twice. */
	public function register_categories(): void {
		foreach ( require $this->directory . '/categories.php' as $slug => $category ) {
			if ( ! wp_has_ability_category( $slug ) ) {
				wp_register_ability_category( $slug, $category );
			}
		}
	}

	/** Registers every ability that has a definition file. */
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
	 * Accepts input that only lacks required fields: after the permission check the service refuses it with a
	 * specific error code for the missing field. For input with an unknown field, returns WordPress's error code with
	 * a message that names the field.
	 *
	 * @param mixed $valid True, or the WP_Error of WordPress.
	 * @param mixed $input Ability input.
	 * @param mixed $name  Name of any plugin's ability.
	 */
	public function allow_missing_fields( mixed $valid, mixed $input, mixed $name ): mixed {
		if ( ! is_wp_error( $valid ) || ! isset( $this->files()[ $name ] ) ) {
			return $valid;
		}
		$refused = $this->schemas->check( $this->definition( $name )['input_schema'], $input );
		if ( ! is_wp_error( $refused ) ) {
			return true;
		}
		$data = (array) $refused->get_error_data();
		return isset( $data['allowed'] ) && 'ability_invalid_input' === $valid->get_error_code() ? new WP_Error( 'ability_invalid_input', $refused->get_error_message(), $data ) : $valid;
	}

	/**
	 * Checks whether the current user may use an ability. Where the ability has a scope, a caller may also use it through an
	 * application password to which the settings grant this scope.
	 *
	 * @param array<string, mixed> $definition Contents of the definition file.
	 * @param mixed                $input      Ability input that its schema accepts, apart from missing
	 *   fields.
	 */
	private function permits( array $definition, mixed $input ): bool {
		if ( ! isset( $definition['scope'] ) ) {
			return $this->capabilities->allows( ...(array) $definition['capability'] );
		}
		$claimed = is_array( $input ) ? $input['authorization'] ?? null : null;
		return ( $this->services )()->callers->decide( Scope::from( $definition['scope'] ), $claimed, $input )->authorized;
	}

	/**
	 * Returns the result as the current user may see it: only users who can review or apply see directories
	 * of this host.
	 *
	 * @param array<string, mixed>|WP_Error $answer Result of the service.
	 * @return array<string, mixed>|WP_Error
	 */
	private function shown( array|WP_Error $answer ): array|WP_Error {
		if ( $this->capabilities->allows( Capabilities::REVIEW, Capabilities::APPLY ) ) {
			return $answer;
		}
		return ( new HiddenPaths( ( $this->services )()->site ) )->hide( $answer );
	}

	/**
	 * Returns the definition files by ability name: `definitions/get-run.php` is `wp-codebox/get-run`. Only
	 * names from this list are ever turned into paths.
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
	 * Loads one definition.
	 *
	 * @param string $name Ability name, a key of `files()`.
	 * @return array<string, mixed>
	 */
	private function definition( string $name ): array {
		return require $this->files()[ $name ];
	}

	/**
	 * Runs an ability for PHP code of this site. Schema, service and authority are the same as through the
	 * Abilities API, but no capability check happens.
	 *
	 * @param string $name  Name of the ability.
	 * @param mixed  $input Input as the caller gave it.
	 * @return array<string, mixed>|WP_Error
	 */
	public function run_trusted( string $name, mixed $input ): array|WP_Error {
		if ( ! isset( $this->files()[ $name ] ) ) {
			return Failure::because(
				ErrorCode::ApiAbilityNotSupported,
				/* translators: %s: name of an ability. */
				Sentence::of( __( 'There is no ability "%s"; WP_Codebox_API::public_abilities() lists all abilities.', 'codebox' ), sanitize_text_field( $name ) )
			)->to_wp_error();
		}
		try {
			$valid = $this->schemas->check( $this->definition( $name )['input_schema'], $input );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
		if ( is_wp_error( $valid ) ) {
			return SchemaStore::failure( $valid )->to_wp_error();
		}
		return $this->execute( $name, $input );
	}

	/**
	 * Lists the callable abilities.
	 *
	 * @return array<string, array{label: string, description: string, input_schema: string, output_schemas:
	 *               list<string>, capabilities: list<string>, scopes: list<string>, annotations:
	 *               array<string, bool>}> The result matches one of `output_schemas`; one of the capabilities
	 *               or scopes is enough.
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
	 * Runs an ability. Every exception becomes a `WP_Error` with a status, because WordPress would put the
	 * exception text into the response.
	 *
	 * @param string $name  Name of the ability.
	 * @param mixed  $input Ability input that its schema accepts, apart from missing fields.
	 * @return array<string, mixed>|WP_Error
	 */
	private function execute( string $name, mixed $input ): array|WP_Error {
		try {
			$definition = $this->definition( $name );
			// Before WordPress 7.1 a GET request passes numbers and booleans as strings.
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
