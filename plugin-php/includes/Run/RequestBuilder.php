<?php
/**
 * From the input of a task to a request of the extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Model\TaskModel;
use WPCodebox\Native\Policy;
use WPCodebox\Native\Run;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Maps names, fills in what only WordPress knows (directories, the site's id) and
 * judges nothing that the extension judges. `sandbox_session_id`, `session_id` and
 * `orchestrator` belong to the caller and never enter a request.
 */
final class RequestBuilder {

	private const TASK_FIELDS = [ 'target', 'expected_artifacts', 'structured_artifacts', 'context' ];

	/**
	 * Wires the builder.
	 *
	 * @param Site          $site       This site.
	 * @param MountPlan     $mounts     Mounts of a task.
	 * @param ComponentPlan $components Components of a task.
	 * @param AgentChoice   $agents     Agent of a task.
	 * @param TaskModel     $models     Model of a task, and what it inherits.
	 * @param ToolChoice    $tools      Tools of a task.
	 * @param ParentTools   $parent     Tools that this site answers for.
	 * @param SecretChoice  $secrets    Secrets of a task.
	 * @param TaskLimits    $limits     Limits of a task.
	 * @param Settings      $settings   Host settings.
	 */
	public function __construct(
		private readonly Site $site,
		private readonly MountPlan $mounts,
		private readonly ComponentPlan $components,
		private readonly AgentChoice $agents,
		private readonly TaskModel $models,
		private readonly ToolChoice $tools,
		private readonly ParentTools $parent,
		private readonly SecretChoice $secrets,
		private readonly TaskLimits $limits,
		private readonly Settings $settings
	) {}

	/**
	 * Builds the request. The task itself is judged first, so that a caller who forgot
	 * the goal hears about that and not about a missing mount.
	 *
	 * @param array<string, mixed>                        $input     Task input, valid by its schema.
	 * @param Authority                                   $authority In whose name.
	 * @param list<array{source: string, target: string}> $staged    Host files the operator puts into the guest.
	 * @param list<array<string, mixed>>                  $lent      Secrets the operator lends: {env, value, hosts}.
	 * @return array<string, mixed>
	 * @throws Failure When mounts, agent or secrets cannot be found.
	 */
	public function build( array $input, Authority $authority, array $staged = [], #[\SensitiveParameter] array $lent = [] ): array {
		$tools   = $this->tools->resolve( $input );
		$secrets = $this->secrets->resolve( $input, $authority, $lent );
		$parent  = $this->parent->listed( $input );
		$request = $this->task( $input, $authority, $this->names( $tools['allowed_tools'], $parent ) );
		Run::validate( $request + $this->policy( $input, 'none', [] ) );

		$request['mounts'] = $this->mounts->rows( $input );
		$request          += $this->components->fields( $input, $request['mounts'], $authority );
		$request['agent']  = $this->agents->resolve( $input );
		if ( ! empty( $request['agent']['env'] ) ) {
			$request['provenance']['agent_env'] = array_map( 'strval', array_keys( $request['agent']['env'] ) );
		}
		$kind  = AgentChoice::kind( $request['agent'] );
		$given = $this->models->resolve( $input, $authority, $kind, $secrets );
		if ( [] !== $given->model ) {
			$request['model'] = $given->model;
		}
		if ( [] !== $given->secrets ) {
			$request['secrets'] = $given->secrets;
		}
		$request['provenance'] += $given->record;
		// The built-in agent's model is the runner's to call; everything else calls it from the guest.
		$presets  = [] === $given->model || 'model' === $kind ? [] : [ 'model' ];
		$request += $this->policy( $input, $given->for_guest() ? 'connector-scoped' : 'none', $presets );
		if ( null !== $tools['policy'] ) {
			$request['tool_policy'] = $tools['policy'];
		}
		if ( null !== $parent ) {
			$request['parent_tools'] = $parent;
		}
		if ( [] !== $staged ) {
			$request['staged_files'] = $staged;
			// Names only, so that a repetition can say what it lacks.
			$request['provenance']['staged_files'] = array_column( $staged, 'target' );
		}
		$roots = $this->site->allowed_roots( $authority );
		if ( null !== $roots ) {
			$request['allowed_roots'] = $roots;
		}
		$max = $this->settings->own_max_runs();
		if ( null !== $max ) {
			$request['max_runs'] = $max;
		}
		return $request;
	}

	/**
	 * The task as the agent will read it.
	 *
	 * @param array<string, mixed> $input   Task input.
	 * @param list<string>         $allowed Names of its tools; empty when nobody names any.
	 * @return array<string, mixed>
	 */
	private function task_input( array $input, array $allowed ): array {
		$task = [
			'schema'  => 'wp-codebox/task-input/v1',
			'version' => 1,
			'goal'    => (string) ( $input['goal'] ?? '' ),
		];
		foreach ( self::TASK_FIELDS as $field ) {
			if ( ! empty( $input[ $field ] ) ) {
				$task[ $field ] = $input[ $field ];
			}
		}
		if ( [] !== $allowed ) {
			$task['allowed_tools'] = $allowed;
		}
		return $task;
	}

	/**
	 * Everything but mounts, agent, model, policy and secrets.
	 *
	 * @param array<string, mixed> $input     Task input.
	 * @param Authority            $authority In whose name.
	 * @param list<string>         $allowed   Names of its tools; empty when nobody names any.
	 * @return array<string, mixed>
	 */
	private function task( array $input, Authority $authority, array $allowed ): array {
		$request = [
			'site'       => $this->site->id(),
			'task_input' => $this->task_input( $input, $allowed ),
			'wordpress'  => $this->site->wordpress(),
			'denied'     => $this->site->denied(),
			'code_roots' => $this->site->known_roots(),
			'provenance' => $this->provenance( $input, $authority ),
		];
		foreach ( [ 'code', 'code_file' ] as $refused ) {
			if ( array_key_exists( $refused, $input ) ) {
				$request[ $refused ] = $input[ $refused ];
			}
		}
		if ( ! empty( $input['checks'] ) ) {
			$request['checks'] = array_values( (array) $input['checks'] );
		}
		if ( ! empty( $input['commands'] ) ) {
			// No ability takes them; a replay knows them from its bundle.
			$request['commands'] = array_values( (array) $input['commands'] );
		}
		if ( ! empty( $input['find_renames'] ) ) {
			$request['find_renames'] = true;
		}
		$limits = $this->limits->resolve( $input );
		if ( [] !== $limits ) {
			$request['limits'] = $limits;
		}
		return $request;
	}

	/**
	 * Names of the tools of a task: those that are named, and with them the parent tools it lists.
	 *
	 * @param list<string>|null         $allowed Tools that are named; null or empty: all.
	 * @param array<string, mixed>|null $parent  Parent tools.
	 * @return list<string>
	 */
	private function names( ?array $allowed, ?array $parent ): array {
		return empty( $allowed ) ? [] : array_values( array_unique( array_merge( $allowed, array_column( $parent['tools'] ?? [], 'id' ) ) ) );
	}

	/**
	 * The policy, when the task needs another than the default.
	 *
	 * @param array<string, mixed> $input   Task input.
	 * @param string               $secrets What a policy that is not given says of secrets.
	 * @param list<string>         $presets Network presets the agent needs. A task that says deny keeps it.
	 * @return array{policy?: array<string, mixed>}
	 */
	private function policy( array $input, string $secrets, array $presets ): array {
		$given = empty( $input['policy'] ) ? null : (array) $input['policy'];
		if ( ! isset( $input['network'] ) && 'none' === $secrets && [] === $presets ) {
			return null === $given ? [] : [ 'policy' => $given ];
		}
		$policy            = $given ?? array_merge( Policy::defaults( [ 'command-agent-run' ] ), [ 'secrets' => $secrets ] );
		$asked             = $input['network'] ?? $given['network'] ?? null;
		$policy['network'] = $asked ?? $policy['network'];
		if ( [] !== $presets && ( null === $asked || is_array( $asked ) ) ) {
			$network            = is_array( $asked ) ? $asked : [];
			$network['presets'] = array_values( array_unique( array_merge( (array) ( $network['presets'] ?? [] ), $presets ) ) );
			$policy['network']  = $network;
		}
		return [ 'policy' => $policy ];
	}

	/**
	 * Who asked, as it may stand in a bundle: no names, no host paths.
	 *
	 * @param array<string, mixed> $input     Task input.
	 * @param Authority            $authority In whose name.
	 * @return array<string, mixed>
	 */
	private function provenance( array $input, Authority $authority ): array {
		$nobody     = Authority::Operator === $authority ? 'operator' : 'none';
		$provenance = [
			'requester' => [
				'kind' => get_current_user_id() > 0 ? 'user' : $nobody,
				'id'   => get_current_user_id(),
			],
			'wordpress' => get_bloginfo( 'version' ),
			'plugin'    => \WPCodebox\VERSION,
		];
		$components = $this->components->provenance( $input );
		if ( [] !== $components ) {
			$provenance['components'] = $components;
		}
		if ( ! empty( $input['metadata'] ) ) {
			$provenance['metadata'] = $input['metadata'];
		}
		return $provenance;
	}
}
