<?php
/**
 * Runs tasks in the runtime that they name.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\HostPlugin\HostProviders;
use WPCodebox\Run\RunService;
use WPCodebox\Run\TaskTexts;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The runtime `wp-codebox/host-playground` is this host: the task runs like `run-agent-task`, with the same checks. Plugins
 * of the site add runtimes with the filter `wp_codebox_runtime_task_providers`.
 */
final class RuntimeTasks {

	/** Id of the runtime that this plugin provides. */
	public const HOST = 'wp-codebox/host-playground';

	private const SCHEMA = 'wp-codebox/runtime-task-result/v1';
	private const TEXTS  = [ 'task', 'target_id', 'mode', 'agent', 'provider', 'model', 'sandbox_session_id' ];

	/** Members of a task that hold its goal, in order of precedence. */
	private const GOALS = [ 'goal', 'message', 'prompt' ];

	/** Fields of a task document that may be empty: a document has all of them. */
	private const DOCUMENT = [ ...TaskTexts::NAMES, 'target', 'allowed_tools', 'expected_artifacts', 'structured_artifacts', 'staged_files', 'agent_bundles', 'tool_bridge', 'parent_tool_bridge', 'sandbox_tool_policy', 'policy', 'context' ];

	/** Fields of a request that are also fields of `run-agent-task`. */
	private const SHARED = [ 'agent', 'provider', 'model', 'mode', 'sandbox_session_id', 'orchestrator', 'metadata' ];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate    Check that the PHP extension is loaded and its version fits.
	 * @param RunService    $runs    Runs agent tasks.
	 * @param SchemaStore   $schemas Loader of the JSON schemas.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RunService $runs,
		private readonly SchemaStore $schemas
	) {}

	/**
	 * Runs one task.
	 *
	 * @param array<string, mixed>             $input     Ability input.
	 * @param Authority                        $authority User or operator the call runs as.
	 * @param (callable(array): array)|null    $execute   Runs input of `run-agent-task` on this host; default: waits like
	 *   the ability.
	 * @return array<string, mixed> `wp-codebox/runtime-task-result/v1`.
	 * @throws Failure When the request is invalid, or no runtime takes it.
	 */
	public function run( array $input, Authority $authority, ?callable $execute = null ): array {
		$this->gate->check();
		HostAnswer::bounded( $input, ErrorCode::RuntimeTaskRequestInvalid );
		$input  = HostAnswer::trimmed( $input, self::TEXTS );
		$target = (string) ( $input['target_id'] ?? '' );
		if ( in_array( $input['task'] ?? '', [ '', [] ], true ) ) {
			throw Failure::because( ErrorCode::RuntimeTaskRequestInvalid, __( 'The request has no "task"; give the goal there as text, or an object with "goal".', 'codebox' ), [], [ 'field' => 'task' ] );
		}
		if ( '' === $target ) {
			/* translators: %s: id of a runtime. */
			throw Failure::because( ErrorCode::RuntimeTaskTargetRequired, Sentence::of( __( 'The request names no runtime; give the id of one in "target_id", such as %s.', 'codebox' ), self::HOST ), [], [ 'field' => 'target_id' ] );
		}
		$row = HostProviders::first( $this->providers( $input ), $input, $target, ErrorCode::RuntimeTaskProviderInvalid );
		if ( null !== $row ) {
			return $this->answered( $row, $input );
		}
		if ( self::HOST === $target ) {
			return $this->here( $input, $execute ?? fn( array $task ): array => $this->runs->answer( $task, $authority ) );
		}
		throw Failure::because(
			ErrorCode::RuntimeTaskUnsupportedTarget,
			/* translators: 1: id of a runtime, 2: id of a runtime. */
			Sentence::of( __( 'No runtime of this site is called "%1$s"; this plugin provides %2$s.', 'codebox' ), sanitize_text_field( $target ), self::HOST ),
			[ __( 'To add a runtime, install a plugin that registers it with the filter wp_codebox_runtime_task_providers.', 'codebox' ) ],
			[ 'field' => 'target_id' ]
		);
	}

	/**
	 * Returns the runtimes that plugins of this site add.
	 *
	 * @param array<string, mixed> $input Ability input.
	 */
	private function providers( array $input ): mixed {
		return HostAnswer::of(
			/**
			 * Registers runtimes that execute tasks. A runtime must not run a task in this WordPress.
			 *
			 * @param list<array{id: string, target_ids?: list<string>, matches?: callable, callback: callable}> $providers
			 *   Runtimes. `target_ids` lists the targets that it takes, or `matches` gets the request and returns whether it
			 *   takes it; without both, it takes the target that is its id. `callback` gets the request and returns
			 *   `wp-codebox/runtime-task-result/v1` or a `WP_Error`. A runtime for `wp-codebox/host-playground` replaces that
			 *   of this plugin.
			 * @param array<string, mixed>                                                                       $input
			 *   Request, `wp-codebox/runtime-task-request/v1`.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_runtime_task_providers', [], $input ),
			ErrorCode::RuntimeTaskProviderInvalid,
			__( 'A plugin that registers runtimes threw an exception; the PHP error log says where.', 'codebox' )
		);
	}

	/**
	 * Has a plugin of this site run the task.
	 *
	 * @param array{id: string, callback: callable} $row   Runtime.
	 * @param array<string, mixed>                  $input Ability input.
	 * @return array<string, mixed>
	 */
	private function answered( array $row, array $input ): array {
		$invalid = ErrorCode::RuntimeTaskProviderInvalidResult;
		$answer  = HostAnswer::of( static fn(): mixed => $row['callback']( $input ), $invalid, __( 'The runtime of the task threw an exception; the PHP error log says where.', 'codebox' ) );
		$answer  = HostAnswer::document( $answer, $invalid, $invalid );
		if ( isset( $answer['schema'] ) && self::SCHEMA !== $answer['schema'] ) {
			/* translators: %s: name of a schema. */
			throw Failure::because( $invalid, Sentence::of( __( 'The runtime of the task answered with another schema than %s.', 'codebox' ), self::SCHEMA ) );
		}
		$known  = array_intersect_key( $answer, array_flip( [ 'status', 'result', 'error', 'events', 'artifacts', 'run', 'metadata', 'upstream_refs' ] ) );
		$good   = is_bool( $answer['success'] ?? null ) ? $answer['success'] : ! isset( $known['error'] ) && ! in_array( $known['status'] ?? '', [ 'failed', 'error' ], true );
		$result = [
			'success'   => $good,
			'schema'    => self::SCHEMA,
			'status'    => $good ? 'completed' : 'failed',
			'execution' => $row['id'],
			'task'      => $input['task'],
		];
		$result = array_merge( $result, $known ) + $this->echoed( $input ) + [ 'events' => [] ];
		$valid  = $this->schemas->check( 'runtime-task-result', $result, 'result' );
		if ( is_wp_error( $valid ) ) {
			/* translators: %s: what is wrong. */
			throw Failure::because( $invalid, Sentence::of( __( 'The runtime of the task answered with invalid members: %s', 'codebox' ), $valid->get_error_message() ) );
		}
		return $result;
	}

	/**
	 * Runs the task in a sandbox of this host.
	 *
	 * @param array<string, mixed>   $input   Ability input.
	 * @param callable(array): array $execute Runs input of `run-agent-task`.
	 * @return array<string, mixed>
	 */
	private function here( array $input, callable $execute ): array {
		$answer  = $execute( $this->task( $input ) );
		$running = 'wp-codebox/run-handle/v1' === $answer['schema'];
		$run     = $running ? array_intersect_key( $answer, array_flip( [ 'run_id', 'status', 'created_at', 'cursor' ] ) ) : (array) $answer['run'];
		$ids     = [ 'run_id' => (string) ( $run['run_id'] ?? '' ) ];
		if ( ! empty( $answer['artifact_id'] ) ) {
			$ids['artifact_id'] = (string) $answer['artifact_id'];
		}
		return [
			'success'       => (bool) $answer['success'],
			'schema'        => self::SCHEMA,
			'status'        => (string) $answer['status'],
			'execution'     => self::HOST,
			'task'          => $input['task'],
			'result'        => $answer,
			'events'        => [],
			'run'           => $run,
			'upstream_refs' => $ids,
		] + HostAnswer::filled(
			[
				'artifacts' => (string) ( $answer['artifacts'] ?? '' ),
				'error'     => (array) ( $answer['error'] ?? [] ),
			]
		) + $this->echoed( $input );
	}

	/**
	 * Returns the task as input of `run-agent-task`. Precedence, lowest first: `options`, `input`, `task_input`, `task`,
	 * fields of the request.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid` with the name of a field that `run-agent-task` does not have.
	 */
	private function task( array $input ): array {
		$document = $this->document( (array) ( $input['task_input'] ?? [] ) );
		$task     = is_array( $input['task'] ) ? $this->document( $input['task'] ) : [ 'goal' => (string) $input['task'] ];
		foreach ( self::GOALS as $name ) {
			if ( is_string( $task[ $name ] ?? null ) && '' !== trim( $task[ $name ] ) ) {
				$task = array_diff_key( $task, array_flip( self::GOALS ) ) + [ 'goal' => trim( $task[ $name ] ) ];
				break;
			}
		}
		$shared = HostAnswer::filled( array_intersect_key( $input, array_flip( self::SHARED ) ) );
		$fields = array_merge( (array) ( $input['options'] ?? [] ), (array) ( $input['input'] ?? [] ), $document, $task, $shared );
		if ( isset( $shared['mode'] ) && ! isset( $this->schemas->get( 'run-agent-task-input' )['properties']['mode'] ) ) {
			// The agent reads the mode in the context of its task.
			$fields['context'] = (array) ( $fields['context'] ?? [] ) + [ 'mode' => $shared['mode'] ];
			unset( $fields['mode'] );
		}
		return $this->schemas->valid( 'run-agent-task-input', $fields );
	}

	/**
	 * Returns a task document as fields of `run-agent-task`, without the members that are empty.
	 *
	 * @param array<string, mixed> $document Document.
	 * @return array<string, mixed>
	 */
	private function document( array $document ): array {
		$known = array_intersect_key( $document, array_flip( self::DOCUMENT ) );
		return HostAnswer::filled( $known ) + array_diff_key( $document, $known, array_flip( [ 'schema', 'version' ] ) );
	}

	/**
	 * Returns the members of the request that the answer repeats.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>
	 */
	private function echoed( array $input ): array {
		return HostAnswer::filled( array_intersect_key( $input, array_flip( [ 'target_id', 'sandbox_session_id', 'orchestrator', 'metadata' ] ) ) );
	}
}
