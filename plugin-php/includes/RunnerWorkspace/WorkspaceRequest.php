<?php
/**
 * Values of a request about a runner workspace.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\RunnerWorkspace;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Reads ids and names from the input and checks them, because a backend passes them to programs such as git, which could
 * take a value that begins with a dash for an option.
 */
final class WorkspaceRequest {

	private const TEXTS = [ 'workspace', 'workspace_handle', 'handle', 'workspace_path', 'repo', 'target_repo', 'repo_slug', 'checkout_path', 'mounted_path', 'clone_url', 'branch', 'branch_prefix', 'from', 'to', 'path', 'exclude_paths', 'command', 'description', 'github_token_env', 'workload_id', 'base', 'base_branch', 'head', 'head_branch', 'commit_message', 'title', 'pr_title', 'body', 'pr_body', 'labels', 'paths', 'changed_paths' ];

	/** Fields with a git reference. */
	private const REFERENCES = [ 'branch', 'from', 'to', 'base', 'base_branch', 'head', 'head_branch' ];

	/** Fields with paths below the workspace. */
	private const RELATIVE = [ 'path', 'exclude_paths', 'paths', 'changed_paths' ];

	/**
	 * Reads a request.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @param list<string>         $needed  Fields that must not be empty.
	 * @param ErrorCode            $invalid Error code of an invalid value.
	 * @return array<string, mixed> Trimmed input without empty values.
	 * @throws Failure With the error code and the name of the field.
	 */
	public static function read( array $input, array $needed, ErrorCode $invalid ): array {
		HostAnswer::bounded( $input, $invalid );
		$read = HostAnswer::filled( HostAnswer::trimmed( $input, self::TEXTS ) );
		foreach ( $needed as $field ) {
			if ( ! isset( $read[ $field ] ) ) {
				/* translators: %s: name of a field. */
				throw self::refused( $invalid, $field, Sentence::of( __( 'The request needs "%s"; it is missing or empty.', 'codebox' ), $field ) );
			}
		}
		foreach ( array_intersect_key( $read, array_flip( self::TEXTS ) ) as $field => $value ) {
			foreach ( (array) $value as $text ) {
				self::check( $field, (string) $text, $invalid );
			}
		}
		if ( isset( $read['github_token_env'] ) && 1 !== preg_match( '/^[A-Z_][A-Z0-9_]{0,127}$/D', $read['github_token_env'] ) ) {
			throw self::refused( $invalid, 'github_token_env', __( '"github_token_env" must be the name of an environment variable in capital letters, such as GITHUB_TOKEN; not the token itself.', 'codebox' ) );
		}
		return $read;
	}

	/**
	 * Returns the handle of the workspace, from any of its names.
	 *
	 * @param array<string, mixed> $input   Ability input.
	 * @throws Failure `wp_codebox_runner_workspace_identity_invalid_request`.
	 */
	public static function handle( array $input ): string {
		$given  = [ $input['workspace'] ?? '', $input['workspace_handle'] ?? '', $input['handle'] ?? '', ( (array) ( $input['runner_workspace'] ?? [] ) )['handle'] ?? '' ];
		$handle = array_values( array_unique( array_filter( array_map( static fn( mixed $one ): string => is_string( $one ) ? trim( $one ) : '', $given ) ) ) );
		if ( 1 !== count( $handle ) ) {
			throw self::refused(
				ErrorCode::RunnerWorkspaceIdentityInvalidRequest,
				'workspace',
				[] === $handle ? __( 'The request names no workspace; give in "workspace" the handle that runner-workspace-prepare returned.', 'codebox' ) : __( '"workspace", "workspace_handle", "handle" and "runner_workspace.handle" name different workspaces; give only one of these fields.', 'codebox' )
			);
		}
		if ( 1 !== preg_match( '~^[A-Za-z0-9][^\p{C}\s\\\\]*$~uD', $handle[0] ) || str_contains( $handle[0], '..' ) ) {
			throw self::refused( ErrorCode::RunnerWorkspaceIdentityInvalidRequest, 'workspace', __( 'The handle of the workspace must begin with a letter or digit and have no space, backslash, control character or ".."; copy it unchanged.', 'codebox' ) );
		}
		return $handle[0];
	}

	/**
	 * Returns the request with a branch: the given one, or one made of the prefix and the id of the work.
	 *
	 * @param array<string, mixed> $read Request, as `read()` returns it.
	 * @return array<string, mixed>
	 */
	public static function with_branch( array $read ): array {
		if ( ! isset( $read['branch'] ) && isset( $read['branch_prefix'] ) ) {
			$read['branch'] = rtrim( $read['branch_prefix'], '/-' ) . '/' . sanitize_title( (string) ( $read['workload_id'] ?? self::slug( $read['repo'] ) ) );
			self::check( 'branch', $read['branch'], ErrorCode::RunnerWorkspacePrepareInvalidRequest );
		}
		return $read;
	}

	/**
	 * Checks the names of the environment variables of a command.
	 *
	 * @param array<string, mixed> $read Request, as `read()` returns it.
	 * @throws Failure `wp_codebox_runner_workspace_command_invalid_request`.
	 */
	public static function check_environment( array $read ): void {
		foreach ( array_keys( (array) ( $read['env'] ?? [] ) ) as $name ) {
			// These variables would make the shell or the linker run other code.
			if ( 1 !== preg_match( '/^[A-Za-z_][A-Za-z0-9_]{0,127}$/D', (string) $name ) || 1 === preg_match( '/^(LD_|DYLD_|BASH_ENV$|ENV$|IFS$|PATH$)/', (string) $name ) ) {
				throw self::refused( ErrorCode::RunnerWorkspaceCommandInvalidRequest, 'env', __( '"env" has a variable that a command must not get; use names of letters, digits and underscores, but not PATH, IFS, ENV, BASH_ENV, LD_… or DYLD_….', 'codebox' ) );
			}
		}
	}

	/**
	 * Returns the values under every name that backends use for them.
	 *
	 * @param array<string, mixed> $read   Request, as `read()` returns it.
	 * @param string               $handle Handle of the workspace; '' for none.
	 * @return array<string, mixed>
	 */
	public static function named( array $read, string $handle ): array {
		return HostAnswer::filled(
			$read + [
				'name'         => '' !== $handle ? $handle : $read['repo_slug'] ?? self::slug( (string) ( $read['repo'] ?? '' ) ),
				'workspace'    => $handle,
				'handle'       => $handle,
				'url'          => $read['clone_url'] ?? '',
				'from_branch'  => $read['from'] ?? '',
				'exclude'      => $read['exclude_paths'] ?? [],
				'timeout'      => $read['timeout_seconds'] ?? null,
				'base'         => $read['base_branch'] ?? '',
				'head'         => $read['head_branch'] ?? '',
				'base_branch'  => $read['base'] ?? '',
				'head_branch'  => $read['head'] ?? '',
				'paths'        => $read['changed_paths'] ?? [],
				'message'      => $read['commit_message'] ?? '',
				'pr_title'     => $read['title'] ?? '',
				'pr_body'      => $read['body'] ?? '',
			]
		);
	}

	/**
	 * Returns the name of a repository without its owner.
	 *
	 * @param string $repo Repository, `owner/name` or a URL.
	 */
	public static function slug( string $repo ): string {
		return (string) preg_replace( '/\.git$/D', '', basename( $repo ) );
	}

	/**
	 * Builds the failure about a field.
	 *
	 * @param ErrorCode $code    Error code.
	 * @param string    $field   Name of the field.
	 * @param string    $message One sentence.
	 */
	private static function refused( ErrorCode $code, string $field, string $message ): Failure {
		return Failure::because( $code, $message, [], [ 'field' => $field ] );
	}

	/**
	 * Checks one value.
	 *
	 * @param string    $field   Name of the field.
	 * @param string    $text    Value.
	 * @param ErrorCode $invalid Error code.
	 * @throws Failure With the error code.
	 */
	private static function check( string $field, string $text, ErrorCode $invalid ): void {
		$many = in_array( $field, [ 'command', 'commit_message', 'body', 'pr_body', 'description' ], true );
		$bad  = str_contains( $text, "\0" ) || ! $many && 1 === preg_match( '/\p{C}/u', $text ) || 1 !== preg_match( '//u', $text );
		$bad  = $bad || ! $many && ! in_array( $field, [ 'title', 'pr_title', 'labels' ], true ) && str_starts_with( $text, '-' );
		$bad  = $bad || in_array( $field, self::REFERENCES, true ) && 1 === preg_match( '~[\s\\\\^:?*\[]|\.\.|@\{|//|\.lock$|[/.]$~D', $text );
		$bad  = $bad || in_array( $field, self::RELATIVE, true ) && ( str_starts_with( $text, '/' ) || in_array( '..', explode( '/', str_replace( '\\', '/', $text ) ), true ) );
		$bad  = $bad || in_array( $field, [ 'workspace_path', 'checkout_path', 'mounted_path' ], true ) && ( ! str_starts_with( $text, '/' ) || in_array( '..', explode( '/', $text ), true ) );
		$bad  = $bad || in_array( $field, [ 'repo', 'target_repo' ], true ) && 1 !== preg_match( '~^[A-Za-z0-9][A-Za-z0-9._:/@-]*$~D', $text );
		$bad  = $bad || 'repo_slug' === $field && 1 !== preg_match( '~^[A-Za-z0-9][A-Za-z0-9._/-]*$~D', $text );
		// A token in the URL would be written to logs of the backend.
		$bad = $bad || 'clone_url' === $field && 1 !== preg_match( '~^(?:https://[^\s/@:]+(?::\d+)?/|ssh://(?:[A-Za-z0-9._-]+@)?[^\s/@:]+(?::\d+)?/|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)[^\s]+$~D', $text );
		if ( $bad ) {
			/* translators: %s: name of a field. */
			throw self::refused( $invalid, $field, Sentence::of( __( 'The value of "%s" is not accepted; it must not begin with "-" or have control characters, a branch must be one that git allows, a "clone_url" is https without a user or ssh, and a path has no ".." and is absolute only in "workspace_path", "checkout_path" and "mounted_path".', 'codebox' ), $field ) );
		}
	}
}
