<?php
/**
 * Runner workspaces: prepare, capture, run a command, publish.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\RunnerWorkspace;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;

defined( 'ABSPATH' ) || exit;

/**
 * A runner workspace is a checkout of a repository outside of this plugin. This class checks requests, passes them to the
 * backend that the site configures and brings the answers into one form. It runs nothing itself. A failure is an answer
 * with `success` false.
 */
final class WorkspaceService {

	public const EVENT = 'runner-workspace';

	/** Default time limit of a command in seconds. */
	private const COMMAND_SECONDS = 120;

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate    Check that the PHP extension is loaded and its version fits.
	 * @param AuditTrail    $audit   Audit log that records each decision.
	 * @param WorkspaceForm $answers Converts answers of the backend.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly AuditTrail $audit,
		private readonly WorkspaceForm $answers = new WorkspaceForm()
	) {}

	/**
	 * Prepares a workspace: adopts the checkout of the host, else clones, else uses the repository that the backend
	 * knows; then adds a work tree for the branch.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/runner-workspace-prepare-result/v1`.
	 */
	public function prepare( array $input ): array {
		return $this->answered(
			'prepare',
			$input,
			[ 'repo' ],
			ErrorCode::RunnerWorkspacePrepareInvalidRequest,
			fn( Backend $backend, array $read ): array => $this->answers->prepared( $this->checkout( $backend, $read ), $read, $backend )
		);
	}

	/**
	 * Reads the change in a workspace.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/runner-workspace-capture-result/v1`.
	 */
	public function capture( array $input ): array {
		return $this->answered(
			'capture',
			$input,
			[ 'workspace' ],
			ErrorCode::RunnerWorkspaceIdentityInvalidRequest,
			function ( Backend $backend, array $read, string $handle ): array {
				$named  = WorkspaceRequest::named( $read, $handle );
				$status = $backend->call( 'workspace_git_status', $named );
				$diff   = false === ( $read['include_diff'] ?? true ) || ! $this->answers->good( $status ) ? null : $backend->call( 'workspace_git_diff', $named );
				return $this->answers->captured( $status, $diff, $read, $handle );
			}
		);
	}

	/**
	 * Has the backend run a command in a workspace.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/runner-workspace-command-result/v1`.
	 */
	public function command( array $input ): array {
		return $this->answered(
			'command',
			$input,
			[ 'workspace', 'command' ],
			ErrorCode::RunnerWorkspaceCommandInvalidRequest,
			fn( Backend $backend, array $read, string $handle ): array => $this->answers->ran( $backend->call( 'run_runner_workspace_command', WorkspaceRequest::named( $read, $handle ) ), $read, $handle )
		);
	}

	/**
	 * Has the backend publish the change of a workspace. Without a backend with this operation nothing is published.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/runner-workspace-publication-result/v1`.
	 */
	public function publish( array $input ): array {
		return $this->answered(
			'publish',
			$input,
			[ 'workspace', 'repo', 'commit_message', 'title', 'body' ],
			ErrorCode::RunnerWorkspacePublicationInvalidRequest,
			fn( Backend $backend, array $read, string $handle ): array => $this->answers->published( $backend->call( 'publish_runner_workspace', WorkspaceRequest::named( $read, $handle ) ), $handle )
		);
	}

	/**
	 * Checks a request and passes it to the backend. An invalid value is an answer with the failure type
	 * `invalid_request`; a missing field is a failure, as it is for every ability.
	 *
	 * @param string       $action  Action: `prepare`, `capture`, `command` or `publish`.
	 * @param array        $input   Ability input.
	 * @param list<string> $needed  Required fields.
	 * @param ErrorCode    $invalid Error code of an invalid value.
	 * @param callable     $work    Calls the backend: gets it, the request and the handle.
	 * @return array<string, mixed>
	 * @throws Failure With the error code, for a missing field.
	 */
	private function answered( string $action, array $input, array $needed, ErrorCode $invalid, callable $work ): array {
		$this->gate->check();
		$handle = '';
		try {
			$read = WorkspaceRequest::read( $input, $needed, $invalid );
			if ( 'prepare' === $action ) {
				$read = WorkspaceRequest::with_branch( $read );
			} else {
				$handle = WorkspaceRequest::handle( $read );
			}
			if ( 'command' === $action ) {
				WorkspaceRequest::check_environment( $read );
				$read['timeout_seconds'] ??= self::COMMAND_SECONDS;
			}
		} catch ( Failure $failure ) {
			if ( ! array_key_exists( (string) ( $failure->data['field'] ?? '' ), $input ) ) {
				throw $failure;
			}
			return $this->answers->failed( $action, $failure, $input, '' );
		}
		return $this->guarded( $action, $read, $handle, static fn( Backend $backend ): array => $work( $backend, $read, $handle ) );
	}

	/**
	 * Returns the backend's description of the workspace to prepare.
	 *
	 * @param Backend              $backend Backend.
	 * @param array<string, mixed> $read    Request.
	 * @return array<string, mixed>
	 */
	private function checkout( Backend $backend, array $read ): array {
		$named = WorkspaceRequest::named( $read, '' );
		$found = [];
		if ( isset( $read['checkout_path'] ) && $backend->has( 'workspace_adopt' ) ) {
			$found = $backend->call( 'workspace_adopt', $named + [ 'path' => $read['checkout_path'] ] );
		} elseif ( isset( $read['clone_url'] ) && $backend->has( 'workspace_clone' ) ) {
			$found = $backend->call( 'workspace_clone', $named );
		} elseif ( $backend->has( 'workspace_show' ) ) {
			$found = $backend->call( 'workspace_show', $named );
		} else {
			throw Failure::because( ErrorCode::RunnerWorkspacePrepareCloneUrlRequired, __( 'The backend of runner workspaces cannot look up a repository by its name; give a "clone_url" if it has the operation workspace_clone, or a "checkout_path" if it has workspace_adopt.', 'codebox' ), [], [ 'field' => 'clone_url' ] );
		}
		if ( ! $this->answers->good( $found ) || ! isset( $read['branch'] ) || ! $backend->has( 'workspace_worktree_add' ) ) {
			return $found;
		}
		return array_merge( $found, $backend->call( 'workspace_worktree_add', $named ) );
	}

	/**
	 * Calls the backend, converts its failures to an answer and records the request in the audit log.
	 *
	 * @param string                                  $action Action: `prepare`, `capture`, `command` or `publish`.
	 * @param array<string, mixed>                    $read   Request.
	 * @param string                                  $handle Handle of the workspace; '' for none.
	 * @param callable(Backend): array<string, mixed> $work   Calls the backend.
	 * @return array<string, mixed>
	 */
	private function guarded( string $action, array $read, string $handle, callable $work ): array {
		$record = [ 'action' => $action ] + HostAnswer::filled( [ 'workspace' => $handle ] + array_intersect_key( $read, array_flip( [ 'repo', 'target_repo', 'branch', 'command' ] ) ) );
		try {
			$backend            = Backend::configured();
			$record['backend']  = $backend->id;
			if ( 'capture' !== $action ) {
				// Written before the backend acts, so an action without a record is not possible.
				$this->audit->write( self::EVENT, $record + [ 'status' => 'started' ] );
			}
			$answer = $work( $backend );
		} catch ( Throwable $thrown ) {
			$failure = 'capture' === $action ? Failure::from( $thrown ) : $this->audit->failure( self::EVENT, $record, $thrown );
			if ( ErrorCode::AuditFailed->value === $failure->error_code ) {
				throw $failure;
			}
			return $this->answers->failed( $action, $failure, $read, $handle );
		}
		if ( 'capture' !== $action ) {
			$this->audit->write( self::EVENT, $record + [ 'status' => $answer['success'] ? 'success' : 'failure' ] );
		}
		return $answer;
	}
}
