<?php
/**
 * Converts the answers of backends about runner workspaces to one form.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\RunnerWorkspace;

use WPCodebox\Connector\Redaction;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;

defined( 'ABSPATH' ) || exit;

/**
 * Backends name the members of their answers differently. This class looks for each member under the names that are in
 * use; a member of another type is an invalid response.
 */
final class WorkspaceForm {

	private const SCHEMAS = [
		'prepare' => 'wp-codebox/runner-workspace-prepare-result/v1',
		'capture' => 'wp-codebox/runner-workspace-capture-result/v1',
		'command' => 'wp-codebox/runner-workspace-command-result/v1',
		'publish' => 'wp-codebox/runner-workspace-publication-result/v1',
	];

	/** Maximum size of each output of a command, in characters. */
	private const OUTPUT = 262144;

	/**
	 * Checks whether the backend reports success.
	 *
	 * @param array<string, mixed> $answer Answer of the backend.
	 */
	public function good( array $answer ): bool {
		return false !== ( $answer['success'] ?? true );
	}

	/**
	 * Returns the answer to `prepare`.
	 *
	 * @param array<string, mixed> $found   Answer of the backend.
	 * @param array<string, mixed> $read    Request.
	 * @param Backend              $backend Backend.
	 * @return array<string, mixed>
	 */
	public function prepared( array $found, array $read, Backend $backend ): array {
		$this->succeeded( $found );
		$handle = $this->text( $found, [ 'handle', 'workspace_handle', 'workspace', 'name' ] );
		if ( '' === $handle ) {
			throw $this->invalid( __( 'The backend of runner workspaces returned no "handle" for the workspace.', 'codebox' ) );
		}
		$row = [
			'handle' => $handle,
			'path'   => $this->text( $found, [ 'path', 'workspace_path', 'worktree_path' ] ),
			'branch' => $this->text( $found, [ 'branch' ] ),
		] + array_intersect_key( $read, array_flip( [ 'repo', 'target_repo', 'repo_slug' ] ) );
		return $this->head( 'prepare', true, 'prepared' ) + HostAnswer::filled( $row ) + [ 'capabilities' => $backend->capabilities() ];
	}

	/**
	 * Returns the answer to `capture`.
	 *
	 * @param array<string, mixed>      $status Status of the backend.
	 * @param array<string, mixed>|null $diff   Difference of the backend; null when it was not asked for.
	 * @param array<string, mixed>      $read   Request.
	 * @param string                    $handle Handle of the workspace.
	 * @return array<string, mixed>
	 */
	public function captured( array $status, ?array $diff, array $read, string $handle ): array {
		$this->succeeded( $status );
		if ( null !== $diff ) {
			$this->succeeded( $diff );
		}
		$left    = array_intersect_key( $read, array_flip( [ 'exclude_paths' ] ) );
		$changed = $this->changed( $status ) ?? ( null === $diff ? false : '' !== trim( $this->text( $diff, [ 'diff', 'patch', 'output', 'text' ] ) ) );
		return [
			'success' => true,
			'schema'  => self::SCHEMAS['capture'],
			'status'  => $this->object( $status + $left ),
			'changed' => $changed,
		] + ( null === $diff ? [] : [ 'diff' => $this->object( $diff ) ] ) + [ 'workspace' => $this->row( $read, $handle ) ];
	}

	/**
	 * Returns the answer to `command`.
	 *
	 * @param array<string, mixed> $answer Answer of the backend.
	 * @param array<string, mixed> $read   Request.
	 * @param string               $handle Handle of the workspace.
	 * @return array<string, mixed>
	 */
	public function ran( array $answer, array $read, string $handle ): array {
		$exit = $answer['exit_code'] ?? $answer['exitCode'] ?? null;
		if ( ! is_int( $exit ) ) {
			$this->succeeded( $answer );
			throw $this->invalid( __( 'The backend of runner workspaces returned no "exit_code" for the command.', 'codebox' ) );
		}
		$elapsed = $answer['elapsed_ms'] ?? $answer['duration_ms'] ?? 0;
		return $this->head( 'command', 0 === $exit, 0 === $exit ? 'completed' : 'failed' ) + HostAnswer::filled( array_intersect_key( $read, array_flip( [ 'command', 'description' ] ) ) ) + [
			'exit_code'  => $exit,
			'stdout'     => $this->output( $answer['stdout'] ?? $answer['output'] ?? '' ),
			'stderr'     => $this->output( $answer['stderr'] ?? '' ),
			'elapsed_ms' => is_int( $elapsed ) || is_float( $elapsed ) ? max( 0, $elapsed ) : 0,
			'workspace'  => $this->row( $read, $handle ),
		] + ( 0 === $exit ? [] : [ 'failure_type' => 'backend_failed' ] );
	}

	/**
	 * Returns the answer to `publish`.
	 *
	 * @param array<string, mixed> $answer Answer of the backend.
	 * @param string               $handle Handle of the workspace.
	 * @return array<string, mixed>
	 */
	public function published( array $answer, string $handle ): array {
		$this->succeeded( $answer );
		$status  = $answer['status'] ?? ( empty( $answer['pull_request'] ) ? 'write_without_pr' : 'published' );
		$members = [];
		foreach ( [
			'branch'       => 'name',
			'commit'       => 'sha',
			'pull_request' => 'url',
			'evidence'     => 'value',
			'artifacts'    => 'value',
		] as $name => $key ) {
			$value = $answer[ $name ] ?? null;
			if ( is_string( $value ) && '' !== $value ) {
				$members[ $name ] = [ $key => $value ];
			} elseif ( is_object( $value ) || is_array( $value ) && [] !== $value && ! array_is_list( $value ) ) {
				$members[ $name ] = $value;
			}
		}
		foreach ( [ 'reused', 'opened' ] as $name ) {
			if ( is_bool( $answer[ $name ] ?? null ) ) {
				$members[ $name ] = $answer[ $name ];
			}
		}
		if ( ! in_array( $status, [ 'published', 'write_without_pr' ], true ) ) {
			throw $this->invalid( __( 'The backend of runner workspaces returned an unknown "status" for the publication; it must be published or write_without_pr.', 'codebox' ) );
		}
		return $this->head( 'publish', true, $status ) + [ 'workspace' => [ 'handle' => $handle ] ] + $members;
	}

	/**
	 * Returns the answer for a failed request.
	 *
	 * @param string               $action  Action.
	 * @param Failure              $failure Failure.
	 * @param array<string, mixed> $read    Request.
	 * @param string               $handle  Handle of the workspace; '' for none.
	 * @return array<string, mixed>
	 */
	public function failed( string $action, Failure $failure, array $read, string $handle ): array {
		$type   = match ( $failure->error_code ) {
			ErrorCode::RunnerWorkspaceBackendUnavailable->value => 'backend_unavailable',
			ErrorCode::RunnerWorkspaceBackendError->value => 'backend_error',
			ErrorCode::RunnerWorkspaceBackendInvalidResponse->value => 'backend_invalid_response',
			ErrorCode::RunnerWorkspacePrepareCloneUrlRequired->value => 'clone_url_required',
			ErrorCode::RunnerWorkspacePrepareInvalidRequest->value, ErrorCode::RunnerWorkspaceIdentityInvalidRequest->value, ErrorCode::RunnerWorkspaceCommandInvalidRequest->value, ErrorCode::RunnerWorkspacePublicationInvalidRequest->value => 'invalid_request',
			default => 'backend_failed',
		};
		$absent = 'backend_unavailable' === $type;
		$shared = [
			'failure_type' => $type,
			'error'        => $failure->to_array(),
		] + ( '' === $handle ? [] : [ 'workspace' => $this->row( $read, $handle ) ] );
		return match ( $action ) {
			'capture' => [
				'success' => false,
				'schema'  => self::SCHEMAS['capture'],
				'status'  => [ 'state' => $absent ? 'unavailable' : 'failed' ],
				'changed' => false,
			],
			'publish' => $this->head( $action, false, 'failed' ),
			'command' => $this->head( $action, false, $absent ? 'unavailable' : 'failed' ) + [ 'command' => $read['command'] ?? '' ] + HostAnswer::filled( array_intersect_key( $read, [ 'description' => 1 ] ) ),
			default => $this->head( $action, false, $absent ? 'unavailable' : 'failed' ) + HostAnswer::filled( array_intersect_key( $read, array_flip( [ 'repo', 'target_repo', 'repo_slug', 'branch' ] ) ) ),
		} + $shared;
	}

	/**
	 * Returns the first members of an answer.
	 *
	 * @param string $action  Action.
	 * @param bool   $success Whether it succeeded.
	 * @param string $status  Status.
	 * @return array<string, mixed>
	 */
	private function head( string $action, bool $success, string $status ): array {
		return [
			'success' => $success,
			'schema'  => self::SCHEMAS[ $action ],
			'status'  => $status,
		];
	}

	/**
	 * Fails when the backend reports a failure.
	 *
	 * @param array<string, mixed> $answer Answer of the backend.
	 * @throws Failure With the code and message of the backend, without secrets.
	 */
	private function succeeded( array $answer ): void {
		if ( $this->good( $answer ) ) {
			return;
		}
		$error   = is_array( $answer['error'] ?? null ) ? $answer['error'] : [];
		$message = Redaction::line( $error['message'] ?? $answer['message'] ?? ( is_string( $answer['error'] ?? null ) ? $answer['error'] : '' ) );
		throw new Failure(
			is_string( $error['code'] ?? null ) && 1 === preg_match( '/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/D', $error['code'] ) ? $error['code'] : 'backend_failed',
			'' === $message ? __( 'The backend of runner workspaces reports a failure without a message.', 'codebox' ) : $message,
			ErrorCode::RunnerWorkspaceBackendError->http_status(),
			ErrorCode::RunnerWorkspaceBackendError->exit_status()
		);
	}

	/**
	 * Returns whether the status reports a change; null when it does not say.
	 *
	 * @param array<string, mixed> $status Status of the backend.
	 */
	private function changed( array $status ): ?bool {
		foreach ( [ 'changed', 'dirty', 'has_changes' ] as $name ) {
			if ( is_bool( $status[ $name ] ?? null ) ) {
				return $status[ $name ];
			}
		}
		if ( is_int( $status['dirty'] ?? null ) ) {
			return $status['dirty'] > 0;
		}
		if ( is_bool( $status['clean'] ?? null ) ) {
			return ! $status['clean'];
		}
		$files = $status['files'] ?? $status['changed_files'] ?? null;
		return is_array( $files ) ? [] !== $files : null;
	}

	/**
	 * Returns the workspace of a request.
	 *
	 * @param array<string, mixed> $read   Request.
	 * @param string               $handle Handle of the workspace.
	 * @return array<string, string>
	 */
	private function row( array $read, string $handle ): array {
		return HostAnswer::filled( [ 'handle' => $handle, 'path' => $read['workspace_path'] ?? '' ] + array_intersect_key( $read, array_flip( [ 'repo', 'target_repo', 'repo_slug' ] ) ) );
	}

	/**
	 * Returns an answer so that JSON writes it as an object, also when it is empty.
	 *
	 * @param array<string, mixed> $answer Answer of the backend.
	 * @return array<string, mixed>|object
	 */
	private function object( array $answer ): array|object {
		return [] === $answer ? (object) [] : $answer;
	}

	/**
	 * Returns the first text under one of several names; '' when there is none.
	 *
	 * @param array<string, mixed> $answer Answer of the backend.
	 * @param list<string>         $names  Names.
	 */
	private function text( array $answer, array $names ): string {
		foreach ( $names as $name ) {
			if ( is_string( $answer[ $name ] ?? null ) && '' !== $answer[ $name ] ) {
				return $answer[ $name ];
			}
		}
		return '';
	}

	/**
	 * Returns the end of an output.
	 *
	 * @param mixed $text Output of the backend.
	 */
	private function output( mixed $text ): string {
		return is_string( $text ) ? mb_substr( $text, -self::OUTPUT ) : '';
	}

	/**
	 * Builds the failure about an invalid response.
	 *
	 * @param string $message One sentence.
	 */
	private function invalid( string $message ): Failure {
		return Failure::because( ErrorCode::RunnerWorkspaceBackendInvalidResponse, $message );
	}
}
