<?php
/**
 * The plugin of this site that makes and stores runner workspaces: clones of a repository in which a task of the site works.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\RunnerWorkspace;

use WP_Ability;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A site names its backend with the filter `wp_codebox_runner_workspace_backend`: an id, and an ability for each
 * operation. Any invalid member disables every operation. Each ability checks its own permission for the current user.
 */
final class Backend {

	/** Operations of a backend. */
	public const OPERATIONS = [ 'workspace_adopt', 'workspace_show', 'workspace_clone', 'workspace_worktree_add', 'workspace_git_status', 'workspace_git_diff', 'run_runner_workspace_command', 'publish_runner_workspace' ];

	private const SCHEMA = 'wp-codebox/runner-workspace-backend/v1';
	private const FIELDS = [ 'schema', 'id', 'workspace_root_constant', 'abilities', 'operations' ];

	/**
	 * Creates the backend.
	 *
	 * @param string                $id        Id of the backend.
	 * @param array<string, string> $abilities Name of the ability by operation.
	 */
	private function __construct(
		public readonly string $id,
		private readonly array $abilities
	) {}

	/**
	 * Returns the backend that the site configures.
	 *
	 * @throws Failure `wp_codebox_runner_workspace_backend_unavailable` without one, or when its configuration is invalid.
	 */
	public static function configured(): self {
		$config = HostAnswer::of(
			/**
			 * Names the backend of runner workspaces, i.e. checkouts of repositories in which the host works.
			 *
			 * @param array<string, mixed> $config Configuration: `schema` `wp-codebox/runner-workspace-backend/v1`, `id`, and
			 *   `abilities`, the name of an ability by operation: `workspace_adopt`, `workspace_show`, `workspace_clone`,
			 *   `workspace_worktree_add`, `workspace_git_status`, `workspace_git_diff`, `run_runner_workspace_command`,
			 *   `publish_runner_workspace`. Empty: there is none.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_runner_workspace_backend', [] ),
			ErrorCode::RunnerWorkspaceBackendUnavailable,
			__( 'The plugin that names the backend of runner workspaces threw an exception; the PHP error log says where.', 'codebox' )
		);
		if ( in_array( $config, [ null, false, [] ], true ) ) {
			throw Failure::because(
				ErrorCode::RunnerWorkspaceBackendUnavailable,
				__( 'No plugin of this site provides a backend for runner workspaces.', 'codebox' ),
				[ __( 'Install a plugin that answers the filter wp_codebox_runner_workspace_backend with an id and an ability for each operation.', 'codebox' ) ]
			);
		}
		$faults = self::faults( $config );
		if ( [] !== $faults ) {
			throw Failure::because(
				ErrorCode::RunnerWorkspaceBackendUnavailable,
				/* translators: %s: what is wrong. */
				Sentence::of( __( 'The backend of runner workspaces is configured wrongly, so it is not used: %s.', 'codebox' ), Sentence::join( ', ', $faults ) )
			);
		}
		return new self( $config['id'], (array) ( $config['abilities'] ?? $config['operations'] ) );
	}

	/**
	 * Checks whether the backend has an operation.
	 *
	 * @param string $operation One of `OPERATIONS`.
	 */
	public function has( string $operation ): bool {
		return isset( $this->abilities[ $operation ] );
	}

	/**
	 * Returns whether the backend can capture, run commands and publish.
	 *
	 * @return array{capture: bool, command: bool, publish: bool}
	 */
	public function capabilities(): array {
		return [
			'capture' => $this->has( 'workspace_git_status' ),
			'command' => $this->has( 'run_runner_workspace_command' ),
			'publish' => $this->has( 'publish_runner_workspace' ),
		];
	}

	/**
	 * Runs the ability of an operation as the current user.
	 *
	 * @param string               $operation One of `OPERATIONS`.
	 * @param array<string, mixed> $input     Values under every name that backends use. The ability gets those that its
	 *   input schema names; an ability without such names gets all.
	 * @return array<string, mixed> Answer of the ability in plain data.
	 * @throws Failure When the backend has no such operation, refuses or fails.
	 */
	public function call( string $operation, array $input ): array {
		if ( ! $this->has( $operation ) ) {
			/* translators: 1: id of a backend, 2: name of an operation. */
			throw Failure::because( ErrorCode::RunnerWorkspaceBackendUnavailable, Sentence::of( __( 'The backend %1$s of runner workspaces has no operation %2$s.', 'codebox' ), $this->id, $operation ) );
		}
		$ability = function_exists( 'wp_has_ability' ) && wp_has_ability( $this->abilities[ $operation ] ) ? wp_get_ability( $this->abilities[ $operation ] ) : null;
		if ( ! $ability instanceof WP_Ability ) {
			/* translators: 1: id of a backend, 2: name of an ability. */
			throw Failure::because( ErrorCode::RunnerWorkspaceBackendUnavailable, Sentence::of( __( 'The backend %1$s of runner workspaces names the ability %2$s, which is not registered.', 'codebox' ), $this->id, $this->abilities[ $operation ] ) );
		}
		$names  = array_keys( (array) ( $ability->get_input_schema()['properties'] ?? [] ) );
		$given  = [] === $names ? $input : array_intersect_key( $input, array_flip( $names ) );
		$answer = HostAnswer::of(
			static fn(): mixed => $ability->execute( $given ),
			ErrorCode::RunnerWorkspaceBackendError,
			__( 'The backend of runner workspaces threw an exception; the PHP error log says where.', 'codebox' )
		);
		return HostAnswer::document( $answer, ErrorCode::RunnerWorkspaceBackendError, ErrorCode::RunnerWorkspaceBackendInvalidResponse );
	}

	/**
	 * Lists what is wrong with a configuration.
	 *
	 * @param mixed $config Value that the filter returned.
	 * @return list<string>
	 */
	private static function faults( mixed $config ): array {
		if ( ! is_array( $config ) || array_is_list( $config ) ) {
			return [ __( 'it is not an object', 'codebox' ) ];
		}
		$faults = [];
		foreach ( array_diff( array_map( 'strval', array_keys( $config ) ), self::FIELDS ) as $unknown ) {
			/* translators: %s: name of a field. */
			$faults[] = Sentence::of( __( 'it has no field %s', 'codebox' ), sanitize_key( $unknown ) );
		}
		if ( isset( $config['schema'] ) && self::SCHEMA !== $config['schema'] ) {
			$faults[] = __( 'schema differs', 'codebox' );
		}
		if ( ! is_string( $config['id'] ?? null ) || 1 !== preg_match( '/^[a-z0-9][a-z0-9._-]{0,99}$/D', $config['id'] ) ) {
			$faults[] = __( 'id is not a slug', 'codebox' );
		}
		$abilities = $config['abilities'] ?? $config['operations'] ?? null;
		if ( ! is_array( $abilities ) || [] === $abilities || array_is_list( $abilities ) ) {
			return [ ...$faults, __( 'abilities is not an object', 'codebox' ) ];
		}
		foreach ( $abilities as $operation => $ability ) {
			// Abilities of this plugin are refused: they would call the backend again.
			$named = is_string( $ability ) && 1 === preg_match( '~^[a-z0-9-]{1,100}/[a-z0-9-]{1,100}$~D', $ability ) && ! str_starts_with( $ability, 'wp-codebox/' );
			if ( ! in_array( $operation, self::OPERATIONS, true ) || ! $named ) {
				/* translators: %s: name of an operation. */
				$faults[] = Sentence::of( __( '"abilities.%s" is not the name of an operation, or its value is not an ability of another plugin', 'codebox' ), sanitize_key( (string) $operation ) );
			}
		}
		return $faults;
	}
}
