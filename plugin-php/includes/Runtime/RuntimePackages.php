<?php
/**
 * Runs workflows of agent packages.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use Throwable;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Run\RunNote;
use WPCodebox\Run\RunService;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A package is an agent bundle, a JSON file that a component of the sandbox imports; the workflow is an ability of the
 * sandbox's WordPress. The site may choose another runtime with the filter `wp_codebox_default_runtime_provider`.
 */
final class RuntimePackages {

	/** Id of the runtime that this plugin provides. */
	public const SANDBOX = 'wp-codebox/sandbox';

	/** Members of `workflow.spec` that are fields of `run-agent-task`. */
	private const FIELDS = [ 'plugin', 'theme', 'mounts', 'component_contracts', 'provider_plugin_paths', 'network', 'policy', 'limits', 'task_timeout_seconds', 'secret_env', 'inherit', 'checks', 'placement' ];

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
	 * Runs one workflow.
	 *
	 * @param array<string, mixed> $input     Ability input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/runtime-package-result/v1`. When the workflow cannot run, its
	 *   diagnostics say why.
	 * @throws Failure When the request is incomplete.
	 */
	public function run( array $input, Authority $authority ): array {
		$this->gate->check();
		$input  = $this->read( $input );
		$result = new PackageResult( $input );
		try {
			$row      = PackageProviders::registered( $input );
			$provider = PackageProviders::chosen( $row );
			if ( null !== $provider ) {
				return $result->of_provider( $provider->run( $input ), $provider->id );
			}
			return $this->here( $input, $row, $authority, $result );
		} catch ( Throwable $thrown ) {
			$failure = Failure::from( $thrown );
			if ( ErrorCode::Internal->value === $failure->error_code || ErrorCode::Busy->value === $failure->error_code ) {
				throw $failure;
			}
			return $result->failed( $failure );
		}
	}

	/**
	 * Runs the workflow in a sandbox of this host.
	 *
	 * @param array<string, mixed> $input     Request.
	 * @param array<string, mixed> $row       What a plugin of the site knows about the package.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param PackageResult        $result    Builds the answer.
	 * @return array<string, mixed>
	 */
	private function here( array $input, array $row, Authority $authority, PackageResult $result ): array {
		$source = (string) ( $row['source'] ?? $input['package']['source'] );
		if ( ! str_starts_with( $source, '/' ) || ! str_ends_with( $source, '.json' ) ) {
			throw Failure::because(
				ErrorCode::RuntimePackageSourceMissing,
				__( '"package.source" must be the absolute path of a JSON file with the agent bundle, unless a plugin of this site maps "package.slug" to such a file.', 'codebox' ),
				[ __( 'To map it, install a plugin that answers the filter wp_codebox_runtime_package_registry with the "source" of the package.', 'codebox' ) ],
				[ 'field' => 'package.source' ]
			);
		}
		$spec    = (array) ( $input['workflow']['spec'] ?? [] );
		$ability = $this->ability( $input['workflow']['id'], $spec, $row );
		$task    = [
			/* translators: 1: id of a workflow, 2: name of a package. */
			'goal'               => sprintf( __( 'Run the workflow %1$s of the package %2$s.', 'codebox' ), $input['workflow']['id'], $input['package']['slug'] ),
			'runtime_task'       => [
				'ability' => $ability,
				'input'   => array_merge( (array) ( $spec['input'] ?? [] ), $input['input'] ),
			],
			'agent_bundles'      => [
				[
					'source' => $source,
					'slug'   => $input['package']['slug'],
				],
			],
			'expected_artifacts' => $input['required_artifacts'],
		] + HostAnswer::filled( array_intersect_key( $spec, array_flip( self::FIELDS ) ) );
		$unknown = array_diff( array_keys( $spec ), self::FIELDS, [ 'ability', 'input' ] );
		if ( [] !== $unknown ) {
			/* translators: %s: name of a field. */
			throw Failure::because( ErrorCode::RuntimePackageTaskInvalid, Sentence::of( __( '"workflow.spec" has no field "%s"; its fields are "ability" and "input", and of run-agent-task plugin, theme, mounts, component_contracts, provider_plugin_paths, network, policy, limits, task_timeout_seconds, secret_env, inherit, checks and placement.', 'codebox' ), sanitize_text_field( (string) reset( $unknown ) ) ), [], [ 'field' => 'workflow.spec' ] );
		}
		$task    = $this->schemas->valid( 'run-agent-task-input', HostAnswer::filled( $task ), 'workflow.spec' );
		$request = $this->runs->prepare( $task, $authority );
		$note    = RunNote::of( $request );
		$run     = $this->runs->launch( $request, $authority );
		unset( $request );
		return $result->of_run( (array) $this->runs->wait( $run, $note, $task ) );
	}

	/**
	 * Returns the ability that does the work: that of the specification, else of the registry, else the workflow's id.
	 *
	 * @param string               $workflow Id of the workflow.
	 * @param array<string, mixed> $spec     Specification of the workflow.
	 * @param array<string, mixed> $row      What a plugin of the site knows about the package.
	 * @throws Failure `wp_codebox_runtime_package_workflow_unavailable`.
	 */
	private function ability( string $workflow, array $spec, array $row ): string {
		foreach ( [ $spec['ability'] ?? null, ( (array) ( $row['workflows'] ?? [] ) )[ $workflow ] ?? null, $row['ability'] ?? null, $workflow ] as $name ) {
			if ( is_string( $name ) && 1 === preg_match( '~^[a-z0-9-]+/[a-z0-9/-]+$~D', $name ) ) {
				return $name;
			}
		}
		throw Failure::because(
			ErrorCode::RuntimePackageWorkflowUnavailable,
			__( 'The workflow names no ability of the WordPress in the sandbox; give the name of an ability in "workflow.spec.ability" or "workflow.id".', 'codebox' ),
			[ __( 'A plugin that the sandbox loads must register the ability; list the plugin in "workflow.spec.component_contracts" or in the settings of Codebox.', 'codebox' ) ],
			[ 'field' => 'workflow' ]
		);
	}

	/**
	 * Reads the request.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_runtime_package_task_invalid`.
	 */
	private function read( array $input ): array {
		HostAnswer::bounded( $input, ErrorCode::RuntimePackageTaskInvalid );
		foreach ( [ 'schema', 'package', 'workflow', 'input', 'artifact_declarations', 'required_artifacts' ] as $field ) {
			if ( ! isset( $input[ $field ] ) ) {
				throw $this->incomplete( $field );
			}
		}
		foreach ( [
			'package'  => [ 'slug', 'source' ],
			'workflow' => [ 'id' ],
		] as $object => $fields ) {
			$input[ $object ] = HostAnswer::trimmed( (array) $input[ $object ], $fields );
			foreach ( $fields as $field ) {
				if ( '' === (string) ( $input[ $object ][ $field ] ?? '' ) ) {
					throw $this->incomplete( $object . '.' . $field );
				}
			}
		}
		return $input;
	}

	/**
	 * Builds the failure about a missing field.
	 *
	 * @param string $field Name of the field.
	 */
	private function incomplete( string $field ): Failure {
		/* translators: %s: name of a field. */
		return Failure::because( ErrorCode::RuntimePackageTaskInvalid, Sentence::of( __( 'The request to run a package needs "%s".', 'codebox' ), $field ), [], [ 'field' => $field ] );
	}
}
