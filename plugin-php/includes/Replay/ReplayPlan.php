<?php
/**
 * Rebuilds the task input of a run from its bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Replay;

use WPCodebox\Apply\ApplyTargets;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Native\Policy;
use WPCodebox\Run\TaskTexts;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Converts a bundle's record of its run into the input of the same run. Lists everything that the bundle does
 * not contain (secret values, programs of the operator) or that this site lacks.
 */
final class ReplayPlan {

	private const STAGED   = '#^/run/codebox/staged/#';
	private const REDACTED = '/\[REDACTED(:[^\]]*)?\]/i';
	private const TASK     = [ ...TaskTexts::NAMES, 'target', 'allowed_tools', 'expected_artifacts', 'structured_artifacts', 'context' ];

	/**
	 * Creates the plan with its dependencies.
	 *
	 * @param ApplyTargets $targets Resolves host directories of mounts.
	 */
	public function __construct( private readonly ApplyTargets $targets ) {}

	/**
	 * Returns the input of the run in the form of `run-agent-task`.
	 *
	 * @param array<string, mixed>       $artifact  Artifact bundle.
	 * @param list<array<string, mixed>> $mounts    Rows of the bundle's files/mounts.jsonl.
	 * @param array<string, mixed>       $target    `apply_target` of the ability input.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_replay_unavailable` with the list of missing items.
	 */
	public function input( array $artifact, array $mounts, array $target, Authority $authority ): array {
		$metadata = (array) ( $artifact['metadata'] ?? [] );
		$spec     = (array) ( $metadata['spec'] ?? [] );
		$task     = (array) ( $metadata['task'] ?? [] );
		$agent    = (array) ( $spec['agent'] ?? [] );
		$earlier  = (string) ( $metadata['provenance']['follow_up_of']['run_id'] ?? '' );
		if ( '' !== $earlier ) {
			// The supervisor summarizes the earlier run again, so it does not matter what was redacted in the summary.
			unset( $task['context']['follow_up']['earlier_run'] );
		}
		$lacking  = $this->lacking( $task, $spec, $agent, (array) ( $metadata['provenance'] ?? [] ) );
		$loaded   = $this->components( (array) ( $spec['components'] ?? [] ), $target, $authority, $lacking );
		$mounts   = array_filter( $mounts, static fn( array $mount ): bool => ! self::is_component( $mount, array_column( $loaded, 'slug' ) ) );
		$rows     = $this->rows( $mounts, $target, $authority, $lacking );
		if ( [] !== $lacking ) {
			throw self::unavailable( $lacking );
		}
		$input = array_filter( array_intersect_key( $task, array_flip( self::TASK ) ) ) + [
			'mounts'   => $rows,
			'metadata' => [ 'replay_of' => (string) $artifact['run_id'] ],
		] + $this->worker( $agent );
		if ( [] !== $loaded ) {
			$input['component_contracts'] = $loaded;
		}
		if ( '' !== $earlier ) {
			$input['follow_up_of'] = [
				'run_id'   => $earlier,
				'comments' => (array) ( $input['context']['follow_up']['comments'] ?? [] ),
			];
			// The supervisor of the replay writes `follow_up` into the context again.
			unset( $input['context']['follow_up'] );
		}
		foreach ( [ 'checks', 'commands', 'limits' ] as $field ) {
			if ( ! empty( $spec[ $field ] ) ) {
				$input[ $field ] = $spec[ $field ];
			}
		}
		$policy = (array) ( $metadata['policy'] ?? [] );
		// A policy in the input becomes part of the recorded task, so the default one is left out.
		// phpcs:ignore Universal.Operators.StrictComparisons.LooseNotEqual -- the order of the members does not matter.
		if ( [] !== $policy && Policy::defaults( [ 'command-agent-run' ] ) != $policy ) {
			$input['policy'] = $policy;
		}
		if ( ! empty( $spec['secrets'] ) ) {
			$input['secret_env'] = array_column( (array) $spec['secrets'], 'name' );
		}
		if ( [] !== array_column( ArtifactService::changed_files( $artifact ), 'renamedFrom' ) ) {
			$input['find_renames'] = true;
		}
		return $input;
	}

	/**
	 * Returns the agent of the run as fields of a task input: a command line or an ability of a component.
	 *
	 * @param array<string, mixed> $agent Agent as the bundle records it, complete.
	 * @return array<string, mixed>
	 */
	private function worker( array $agent ): array {
		if ( 'ability' === ( $agent['kind'] ?? '' ) ) {
			return [ 'runtime_task' => array_intersect_key( $agent, array_flip( [ 'ability', 'input' ] ) ) ];
		}
		return [
			'agent_command'       => implode( ' ', array_map( [ $this, 'quote' ], array_map( 'strval', $agent['argv'] ) ) ),
			'agent_success_codes' => array_map( 'intval', (array) ( $agent['successCodes'] ?? [ 0 ] ) ),
		];
	}

	/**
	 * Returns the component contracts of the run, resolved to plugins of this site.
	 *
	 * @param list<array<string, mixed>> $components Rows of the run's spec.
	 * @param array<string, mixed>       $target     `apply_target` of the ability input.
	 * @param Authority                  $authority  User or operator the call runs as.
	 * @param list<string>               $lacking    Collects the missing items.
	 * @return list<array<string, mixed>>
	 */
	private function components( array $components, array $target, Authority $authority, array &$lacking ): array {
		$contracts = [];
		foreach ( $components as $component ) {
			$contract = [
				'slug'   => (string) ( $component['slug'] ?? '' ),
				'loadAs' => (string) ( $component['load_as'] ?? 'mu-plugin' ),
			];
			try {
				$contract['path'] = $this->targets->directory( InstalledCode::PLUGIN_TARGET . $contract['slug'], $target, $authority );
			} catch ( Failure $failure ) {
				/* translators: 1: name of a component, 2: why it is missing, one sentence. */
				$lacking[] = Sentence::of( __( 'the component %1$s (%2$s)', 'codebox' ), $contract['slug'], $failure->getMessage() );
			}
			$contracts[] = $contract + array_filter( array_intersect_key( $component, array_flip( [ 'entry', 'activate', 'required', 'readiness_probe' ] ) ) );
		}
		return $contracts;
	}

	/**
	 * Checks whether a mount row is a component of the run.
	 *
	 * @param array<string, mixed> $mount Mount row.
	 * @param list<string>         $slugs Slugs of the run's components.
	 */
	private static function is_component( array $mount, array $slugs ): bool {
		$metadata = (array) ( $mount['metadata'] ?? [] );
		return empty( $mount['captured'] ) && 'component' === ( $metadata['kind'] ?? '' ) && in_array( $metadata['slug'] ?? null, $slugs, true );
	}

	/**
	 * Builds the failure that lists the missing items.
	 *
	 * @param list<string> $lacking Missing items, one phrase each.
	 */
	public static function unavailable( array $lacking ): Failure {
		return Failure::because(
			ErrorCode::ReplayUnavailable,
			/* translators: %s: list of phrases. */
			Sentence::of( __( 'The run cannot be replayed here; missing: %s.', 'codebox' ), Sentence::join( '; ', $lacking ) ),
			[ __( 'Run the task again with wp-codebox/run-agent-task and give what is missing.', 'codebox' ) ],
			[ 'missing' => $lacking ]
		);
	}

	/**
	 * Returns what the bundle does not record about its run.
	 *
	 * @param array<string, mixed> $task       Task as the bundle records it.
	 * @param array<string, mixed> $spec       Run specification in the bundle.
	 * @param array<string, mixed> $agent      Agent as the bundle records it.
	 * @param array<string, mixed> $provenance Provenance in the bundle, with the names of items that the bundle does not contain.
	 * @return list<string>
	 */
	private function lacking( array $task, array $spec, array $agent, array $provenance ): array {
		$lacking = [];
		if ( '' === trim( (string) ( $task['goal'] ?? '' ) ) ) {
			$lacking[] = __( 'the goal of the task', 'codebox' );
		}
		$argv = array_values( array_filter( (array) ( $agent['argv'] ?? [] ), 'is_string' ) );
		if ( [] === $argv && 'ability' !== ( $agent['kind'] ?? '' ) ) {
			$lacking[] = in_array( $agent['kind'] ?? '', [ 'model', 'preset' ], true ) ? __( 'the responses of the agent\'s model', 'codebox' ) : __( 'the command line of the agent', 'codebox' );
		}
		if ( ! empty( $spec['agentBundles'] ) ) {
			$lacking[] = __( 'the agent bundles that the run imported', 'codebox' );
		}
		$words = array_merge( $argv, ...array_map( static fn( mixed $line ): array => (array) preg_split( '/[\s\'"]+/', (string) $line ), array_values( (array) ( $spec['checks'] ?? [] ) ) ) );
		$files = array_merge( preg_grep( self::STAGED, $words ), array_filter( (array) ( $provenance['staged_files'] ?? [] ), 'is_string' ) );
		foreach ( array_unique( $files ) as $file ) {
			/* translators: %s: path in the sandbox. */
			$lacking[] = Sentence::of( __( 'the host program that the operator mounted at %s', 'codebox' ), $file );
		}
		foreach ( array_filter( (array) ( $provenance['agent_env'] ?? [] ), 'is_string' ) as $name ) {
			/* translators: %s: name of an environment variable. */
			$lacking[] = Sentence::of( __( 'the value of the agent\'s environment variable %s', 'codebox' ), $name );
		}
		if ( 1 === preg_match( self::REDACTED, (string) wp_json_encode( [ $task, $argv, $agent['input'] ?? [], $spec['checks'] ?? [], $spec['commands'] ?? [] ] ) ) ) {
			$lacking[] = __( 'text of the task that was redacted', 'codebox' );
		}
		return $lacking;
	}

	/**
	 * Returns the mounts of the run with their host directories on this site.
	 *
	 * @param list<array<string, mixed>> $mounts    Rows of files/mounts.jsonl.
	 * @param array<string, mixed>       $target    `apply_target` of the ability input.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @param list<string>               $lacking   Collects the missing items.
	 * @return list<array<string, mixed>>
	 */
	private function rows( array $mounts, array $target, Authority $authority, array &$lacking ): array {
		$rows = [];
		foreach ( $mounts as $mount ) {
			$name = (string) ( $mount['target'] ?? '' );
			try {
				$row = [
					'source' => $this->targets->directory( $name, $target, $authority ),
					'target' => $name,
					'mode'   => (string) ( $mount['mode'] ?? 'readwrite' ),
				];
			} catch ( Failure $failure ) {
				/* translators: 1: directory in the sandbox, 2: why it is missing, one sentence. */
				$lacking[] = Sentence::of( __( 'the mount %1$s (%2$s)', 'codebox' ), $name, $failure->getMessage() );
				continue;
			}
			foreach ( [
				'excluded' => 'exclude',
				'metadata' => 'metadata',
			] as $from => $to ) {
				if ( ! empty( $mount[ $from ] ) ) {
					$row[ $to ] = $mount[ $from ];
				}
			}
			$rows[] = $row;
		}
		if ( [] === $mounts ) {
			$lacking[] = __( 'the list of mounts', 'codebox' );
		}
		return $rows;
	}

	/**
	 * Quotes a word so that the command-line splitter returns it unchanged.
	 *
	 * @param string $word Word of a command line.
	 */
	private function quote( string $word ): string {
		return "'" . str_replace( "'", "'\\''", $word ) . "'";
	}
}
