<?php
/**
 * Converts the input of a task to a run request for the PHP extension.
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
use WPCodebox\Requester;
use WPCodebox\SiteSeed\SiteSeeds;
use WPCodebox\TaskInput\StagedFiles;
use WPCodebox\TaskInput\TaskInput;

defined( 'ABSPATH' ) || exit;

/**
 * Leaves the caller's input unchanged and adds host values beside it: data that only WordPress knows
 * (directories, site id) and objects that the input names (plugins, agents, models, secrets). The extension
 * decides which of the two may set a field, and validates all of them.
 */
final class RequestBuilder {

	/**
	 * Creates the builder with its dependencies.
	 *
	 * @param Site          $site       Site the plugin runs on.
	 * @param MountPlan     $mounts     Resolves mounts of a task.
	 * @param ComponentPlan $components Resolves components of a task.
	 * @param AgentChoice   $agents     Chooses the agent of a task.
	 * @param TaskModel     $models     Resolves the model of a task and the connectors whose credentials it inherits.
	 * @param ToolChoice    $tools      Resolves the tools of a task.
	 * @param ParentTools   $parent     Resolves the tools of this site that the agent may call.
	 * @param SecretChoice  $secrets    Resolves the secrets of a task.
	 * @param TaskLimits    $limits     Resolves the limits of a task.
	 * @param EarlierBundle $earlier    Finds the earlier bundle that a task continues.
	 * @param TaskInput     $task_input Converts public fields of a task.
	 * @param StagedFiles   $staged     Finds the host files that a task shows to its sandbox.
	 * @param RequesterShare $shares    Limits what the requester may have.
	 * @param PreviewPlan   $preview    Resolves the preview of a task.
	 * @param SiteSeeds     $seeds      Reads the content of this site that a task copies.
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
		private readonly EarlierBundle $earlier,
		private readonly TaskInput $task_input,
		private readonly StagedFiles $staged,
		private readonly RequesterShare $shares,
		private readonly PreviewPlan $preview = new PreviewPlan(),
		private readonly SiteSeeds $seeds = new SiteSeeds()
	) {}

	/**
	 * Builds the request. The task itself is validated first, so a missing goal is reported before a missing
	 * mount.
	 *
	 * @param array<string, mixed>                              $input     Task input that its schema accepts.
	 * @param Authority                                         $authority User or operator the call runs as.
	 * @param list<array{source: string, target: string}>       $staged    Host files that the operator mounts
	 *   into the guest.
	 * @param list<array<string, mixed>>                        $lent      Secrets from `--secret-env`, each
	 *   {env, value, hosts}.
	 * @param list<array{command: string, args?: list<string>}> $commands  Commands that a replay executes.
	 * @return RunRequest
	 * @throws Failure When mounts, agent, secrets or the earlier bundle cannot be found.
	 */
	public function build( array $input, Authority $authority, array $staged = [], #[\SensitiveParameter] array $lent = [], array $commands = [] ): RunRequest {
		$input   = $this->task_input->known( $input );
		$public  = $input['staged_files'] ?? [];
		$preview = $this->preview->field( $input, $authority );
		$input   = array_diff_key( $input, array_flip( [ 'staged_files', 'preview_hold_seconds', 'preview_port', 'preview_bind', 'preview_public_url' ] ) );
		$tools   = $this->tools->resolve( $input );
		$secrets = $this->secrets->resolve( $input, $authority, $lent );
		$parent  = $this->parent->listed( $input );
		$host    = [
			'site'          => $this->site->id(),
			'wordpress'     => $this->site->wordpress(),
			'denied'        => $this->site->denied(),
			'code_roots'    => $this->site->known_roots(),
			'provenance'    => $this->provenance( $input, $authority ),
			'limits'        => $this->limits->resolve( $input ),
			'allowed_tools' => $this->names( $tools['allowed_tools'], $parent ),
			'commands'      => $commands,
		] + $preview + $this->shares->fields( $authority );
		if ( [] !== $preview ) {
			$host['provenance']['preview'] = true;
		}
		// The host has not resolved these fields yet. Empty values keep the extension from validating what the
		// caller gave for them.
		$unresolved = [
			'mounts'              => [],
			'agent_bundles'       => [],
			'sandbox_tool_policy' => null,
		];
		Run::validate( $input, $host + $unresolved + $this->policy( $input, 'none', [] ) );

		$host                  += $this->earlier->field( $input, $authority );
		$host['mounts']         = $this->mounts->rows( $input );
		$host                  += [] === $commands ? $this->mounts->activations( $host['mounts'] ) : [];
		$host                  += $this->components->fields( $input, $host['mounts'], $authority );
		$host['resolved_agent'] = $this->agents->resolve( $input );
		if ( ! empty( $host['resolved_agent']['env'] ) ) {
			$host['provenance']['agent_env'] = array_map( 'strval', array_keys( $host['resolved_agent']['env'] ) );
		}
		$kind  = AgentChoice::kind( $host['resolved_agent'] );
		$given = $this->models->resolve( $input, $authority, $kind, $secrets );
		if ( [] !== $given->model ) {
			$host['resolved_model'] = $given->model;
		}
		$host['secrets']     = $given->secrets;
		$host['provenance'] += $given->record;
		// The supervisor calls the model of the built-in agent; every other agent calls it from the guest and
		// needs network access.
		$presets                     = [] === $given->model || 'model' === $kind ? [] : [ 'model' ];
		$host                       += $this->policy( $input, $given->for_guest() ? 'connector-scoped' : 'none', $presets );
		$host['sandbox_tool_policy'] = $tools['policy'];
		if ( null !== $parent ) {
			$host['parent_tools'] = $parent;
		}
		$staged = [ ...$staged, ...$this->staged->rows( $public, $authority ) ];
		if ( [] !== $staged ) {
			$host['staged_files'] = $staged;
			// Records only targets, so a replay can report the missing files.
			$host['provenance']['staged_files'] = array_column( $staged, 'target' );
		}
		$seeds = $this->seeds->resolved( $input['site_seeds'] ?? [], $authority );
		if ( [] !== $seeds ) {
			$host['resolved_seeds']           = $seeds;
			$host['provenance']['site_seeds'] = SiteSeeds::provenance( $seeds );
		}
		$roots = $this->site->allowed_roots( $authority );
		if ( null !== $roots ) {
			$host['allowed_roots'] = $roots;
		}
		return new RunRequest( $input, $host );
	}

	/**
	 * Returns the names of the tools to which the task limits its agent, with the listed tools of this site; empty without
	 * a limit.
	 *
	 * @param list<string>|null         $allowed Names of allowed tools; null or empty allows all.
	 * @param array<string, mixed>|null $parent  Tools of this site that the task lists; null without any.
	 * @return list<string>
	 */
	private function names( ?array $allowed, ?array $parent ): array {
		return empty( $allowed ) ? [] : array_values( array_unique( array_merge( $allowed, array_column( $parent['tools'] ?? [], 'id' ) ) ) );
	}

	/**
	 * Returns the run's policy (network, secrets, commands) when the task needs another one than the default.
	 *
	 * @param array<string, mixed> $input   Task input.
	 * @param string               $secrets Secrets mode of the policy when the task gives none.
	 * @param list<string>         $presets Network presets that the agent needs; a task with network deny
	 *   keeps it.
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
	 * Returns requester id, versions and component origins for the bundle, without names and host paths.
	 *
	 * @param array<string, mixed> $input     Task input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	private function provenance( array $input, Authority $authority ): array {
		$provenance = [
			'requester' => Requester::of_call( $this->site, $authority ),
			'wordpress' => get_bloginfo( 'version' ),
			'plugin'    => \WPCodebox\VERSION,
		];
		$components = $this->components->provenance( $input );
		if ( [] !== $components ) {
			$provenance['components'] = $components;
		}
		return $provenance;
	}
}
