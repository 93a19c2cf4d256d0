<?php
/**
 * Facts about this installation for other programs.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Api;

use Closure;
use ReflectionClass;
use ReflectionMethod;
use WPCodebox\Abilities\Registrar;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Native\Policy;
use WPCodebox\Sentence;

use const WPCodebox\VERSION;

defined( 'ABSPATH' ) || exit;

/**
 * Describes what this installation can do. Every value is read from the installation (definition files, schemas,
 * extension), so no document claims a feature that is missing.
 */
final class RuntimeFacts {

	/** Ability that a public capability needs, by capability. */
	private const CAPABILITIES = [
		'agent-task:run'               => 'run-agent-task',
		'agent-task:batch'             => 'run-agent-task-batch',
		'agent-task:fanout'            => 'run-agent-task-fanout',
		'runtime-package:run'          => 'run-runtime-package',
		'runtime-requirements:resolve' => 'resolve-runtime-requirements',
		'wordpress-runtime:workload'   => 'run-wordpress-workload',
		'wordpress-runtime:fuzz-suite' => 'run-fuzz-suite',
		'browser-session:create'       => 'create-browser-playground-session',
	];

	/** Public status words by kind of status. */
	private const STATUSES = [
		'command'    => [ 'completed', 'failed', 'timed_out', 'cancelled', 'running', 'queued' ],
		'phase'      => [ 'succeeded', 'failed', 'partial', 'blocked', 'skipped', 'running' ],
		'agent_task' => [ 'succeeded', 'failed', 'no_op', 'timeout', 'provider_error', 'unable_to_remediate' ],
		'check'      => [ 'passed', 'failed', 'warning', 'skipped', 'unknown' ],
	];

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Registrar     $registrar Registrar of the abilities.
	 * @param SchemaStore   $schemas   Loader of the JSON schemas.
	 * @param ExtensionGate $gate      Check that the PHP extension is loaded and its version fits.
	 * @param string        $digest    Digest over all schemas of the plugin.
	 * @param Closure       $browser   Returns whether sessions in the browser can start.
	 */
	public function __construct(
		private readonly Registrar $registrar,
		private readonly SchemaStore $schemas,
		private readonly ExtensionGate $gate,
		private readonly string $digest,
		private readonly Closure $browser
	) {}

	/**
	 * Returns the description of the installation.
	 *
	 * @return array<string, mixed> `wp-codebox/runtime-descriptor/v1`.
	 */
	public function descriptor(): array {
		$browser = ( $this->browser )();
		return [
			'schema'              => 'wp-codebox/runtime-descriptor/v1',
			'version'             => VERSION,
			'runtime'             => [
				'id'                => 'wp-codebox/host-sandbox',
				'kind'              => 'host',
				'isolation'         => 'kernel',
				'wordpress_version' => get_bloginfo( 'version' ),
				'php_version'       => PHP_VERSION,
				'extension'         => array_filter( [ 'version' => ExtensionGate::info()['version'] ?? null ] ) + [ 'loaded' => [] !== ExtensionGate::info() ],
			],
			'readiness'           => $this->readiness() + [
				'publicApi'        => true,
				'contractManifest' => true,
				'browserRuntime'   => $browser,
			],
			'capabilities'        => [ ...$this->capabilities(), 'wordpress-runtime:sandbox-isolation-proof', 'contract-manifest:read' ],
			'packageCapabilities' => array_values( preg_grep( '/^runtime-package:/D', $this->capabilities() ) ),
			'runtimeServices'     => [
				[
					'id'     => 'host-sandbox',
					'status' => $this->readiness()['status'],
				],
				[
					'id'     => 'browser-sessions',
					'status' => $browser ? 'ready' : 'unavailable',
				],
			],
			'abilities'           => array_keys( $this->registrar->catalogue() ),
			'contractManifest'    => $this->manifest(),
		];
	}

	/**
	 * Returns the list of what callers may rely on.
	 *
	 * @return array<string, mixed> `wp-codebox/runtime-contract-manifest/v1`.
	 */
	public function manifest(): array {
		$methods = ( new ReflectionClass( \WP_Codebox_API::class ) )->getMethods( ReflectionMethod::IS_PUBLIC );
		return [
			'schema'          => 'wp-codebox/runtime-contract-manifest/v1',
			'version'         => 1,
			'plugin_version'  => VERSION,
			'contract_digest' => [
				'algorithm' => 'sha256',
				'value'     => $this->digest,
			],
			'capabilities'    => $this->capabilities(),
			'abilities'       => $this->registrar->catalogue(),
			'schemas'         => $this->ids(),
			'methods'         => array_map( static fn( ReflectionMethod $method ): string => $method->getName(), $methods ),
		];
	}

	/**
	 * Returns the values that public documents share: status words, error codes and digest rules.
	 *
	 * @return array<string, mixed>
	 */
	public function primitives(): array {
		$codes = [];
		foreach ( ErrorCode::cases() as $code ) {
			$codes[ $code->value ] = [
				'http_status' => $code->http_status(),
				'exit_status' => $code->exit_status(),
			];
		}
		return [
			'schemas'     => $this->ids(),
			'statuses'    => self::STATUSES,
			'outcomes'    => $this->schemas->get( 'run-result' )['properties']['outcome']['enum'],
			'error_codes' => $codes,
		];
	}

	/**
	 * Returns what this installation offers to fuzz suites. The commands are those that a case may use.
	 *
	 * @return array<string, mixed> `wp-codebox/wordpress-fuzz-runtime-contract/v1`.
	 */
	public function fuzz_contract(): array {
		$ability   = 'wp-codebox/run-fuzz-suite';
		$supported = isset( $this->registrar->catalogue()[ $ability ] );
		$readiness = $this->readiness();
		if ( ! $supported ) {
			$readiness['status']    = 'blocked';
			$readiness['missing'][] = [
				'code'    => ErrorCode::ApiAbilityNotSupported->value,
				/* translators: %s: name of an ability. */
				'message' => Sentence::of( __( 'This version has no ability "%s"; write the inputs as steps of a recipe for "wp-codebox recipe-run".', 'codebox' ), $ability ),
			];
		}
		return [
			'schema'           => 'wp-codebox/wordpress-fuzz-runtime-contract/v1',
			'version'          => 1,
			'ability'          => $ability,
			'supported'        => $supported,
			'readiness'        => $readiness,
			// A suite never runs in the WordPress that received the call: the site is not disposable.
			'runnerModes'      => $supported ? [ 'runtime-backed' ] : [],
			'capabilities'     => array_values( preg_grep( '/^wordpress-runtime:/D', $this->capabilities() ) ),
			'sandboxCommands'  => null === $this->gate->failure() ? array_column( Policy::commands()['commands'], 'id' ) : [],
			'contractManifest' => [
				'algorithm' => 'sha256',
				'value'     => $this->digest,
			],
		];
	}

	/**
	 * Returns whether a sandbox can start, with the reason when it cannot.
	 *
	 * @return array{status: string, missing: list<array{code: string, message: string}>}
	 */
	private function readiness(): array {
		$failure = $this->gate->failure();
		return [
			'status'  => null === $failure ? 'ready' : 'blocked',
			'missing' => null === $failure ? [] : [
				[
					'code'    => $failure->error_code,
					'message' => $failure->getMessage(),
				],
			],
		];
	}

	/**
	 * Returns the public capabilities whose ability exists.
	 *
	 * @return list<string>
	 */
	private function capabilities(): array {
		$abilities = $this->registrar->catalogue();
		return array_keys( array_filter( self::CAPABILITIES, static fn( string $name ): bool => isset( $abilities[ 'wp-codebox/' . $name ] ) ) );
	}

	/**
	 * Returns the ids of all schemas, such as `wp-codebox/run-result/v1`.
	 *
	 * @return list<string>
	 */
	private function ids(): array {
		return array_map( static fn( string $name ): string => 'wp-codebox/' . $name . '/v1', $this->schemas->names() );
	}
}
