<?php
/**
 * Answer of a workflow of an agent package.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Brings the result of a run, or of a runtime of another plugin, into one form. */
final class PackageResult {

	private const SCHEMA = 'wp-codebox/runtime-package-result/v1';

	/**
	 * Creates the builder.
	 *
	 * @param array<string, mixed> $input Request, `wp-codebox/runtime-package-task/v1`.
	 */
	public function __construct( private readonly array $input ) {}

	/**
	 * Returns the answer for a run that ended.
	 *
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1`.
	 * @return array<string, mixed>
	 */
	public function of_run( array $result ): array {
		$said        = $this->said( $result );
		$artifacts   = array_values( array_filter( (array) ( $said['artifacts'] ?? [] ), static fn( mixed $row ): bool => is_array( $row ) && [] !== $row ) );
		$diagnostics = [];
		if ( ! empty( $result['error'] ) ) {
			$diagnostics[] = [
				'code'     => (string) ( $result['error']['code'] ?? ErrorCode::RunFailed->value ),
				'message'  => (string) ( $result['error']['message'] ?? '' ),
				'severity' => 'error',
			];
		}
		if ( ! empty( $result['artifacts']['path'] ) ) {
			$artifacts[] = [
				'kind'           => 'artifact-bundle',
				'id'             => (string) $result['artifacts']['bundle_id'],
				'directory'      => (string) $result['artifacts']['path'],
				'manifestSha256' => (string) $result['artifacts']['manifest_sha256'],
			];
		}
		$outputs = is_array( $said['outputs'] ?? null ) ? $said['outputs'] : array_diff_key( $said, [ 'artifacts' => 1 ] );
		return $this->envelope(
			(bool) ( $result['success'] ?? false ) && false !== ( $said['success'] ?? true ),
			$this->projected( $said, $outputs, $diagnostics ),
			$artifacts,
			$diagnostics,
			[
				'runtime' => RuntimePackages::SANDBOX,
				'run_id'  => (string) ( $result['run_id'] ?? '' ),
				'outcome' => (string) ( $result['outcome'] ?? '' ),
			]
		);
	}

	/**
	 * Returns the answer of a runtime of another plugin.
	 *
	 * @param array<string, mixed> $answer Answer in plain data.
	 * @param string               $id     Id of the runtime.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_runtime_provider_invalid_result`.
	 */
	public function of_provider( array $answer, string $id ): array {
		$status = $answer['status'] ?? ( isset( $answer['success'] ) ? ( true === $answer['success'] ? 'success' : 'failed' ) : null );
		if ( ! in_array( $status, [ 'success', 'failed' ], true ) || isset( $answer['schema'] ) && self::SCHEMA !== $answer['schema'] ) {
			throw $this->invalid( 'status' );
		}
		$rows = [];
		foreach ( [ 'artifacts', 'diagnostics' ] as $name ) {
			$rows[ $name ] = $answer[ $name ] ?? [];
			if ( ! is_array( $rows[ $name ] ) || ! array_is_list( $rows[ $name ] ) || $rows[ $name ] !== array_filter( $rows[ $name ], 'is_array' ) ) {
				throw $this->invalid( $name );
			}
		}
		foreach ( $rows['diagnostics'] as $index => $row ) {
			// Optional members that are no texts are left out.
			$optional = array_filter( array_intersect_key( $row, [ 'severity' => 1, 'field' => 1 ] ), 'is_string' );

			$rows['diagnostics'][ $index ] = array_merge(
				array_diff_key( $row, [ 'severity' => 1, 'field' => 1 ] ),
				$optional,
				[
					'code'    => is_string( $row['code'] ?? null ) ? $row['code'] : 'diagnostic',
					'message' => is_string( $row['message'] ?? null ) ? $row['message'] : '',
				]
			);
		}
		$outputs = $answer['outputs'] ?? [];
		if ( ! is_object( $outputs ) && ( ! is_array( $outputs ) || [] !== $outputs && array_is_list( $outputs ) ) ) {
			throw $this->invalid( 'outputs' );
		}
		return $this->envelope( 'success' === $status && false !== ( $answer['success'] ?? true ), (array) $outputs, $rows['artifacts'], $rows['diagnostics'], [ 'runtime' => $id ] + (array) ( $answer['metadata'] ?? [] ) );
	}

	/**
	 * Returns the answer for a workflow that did not run.
	 *
	 * @param Failure $failure Why.
	 * @return array<string, mixed>
	 */
	public function failed( Failure $failure ): array {
		$row = [
			'code'     => $failure->error_code,
			'message'  => $failure->getMessage(),
			'severity' => 'error',
		];
		if ( is_string( $failure->data['field'] ?? null ) ) {
			$row['field'] = $failure->data['field'];
		}
		return $this->envelope( false, [], [], [ $row ], [] );
	}

	/**
	 * Returns the document that the ability in the sandbox returned.
	 *
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1`.
	 * @return array<string, mixed>
	 */
	private function said( array $result ): array {
		$said = [];
		foreach ( (array) ( $result['transcript']['executions'] ?? [] ) as $execution ) {
			$parsed = $execution['parsed']['result'] ?? null;
			if ( 'agent' === ( $execution['phase'] ?? '' ) && null !== $parsed ) {
				$said = is_array( $parsed ) && ! array_is_list( $parsed ) ? $parsed : [ 'result' => $parsed ];
			}
		}
		return $said;
	}

	/**
	 * Returns the outputs that the request selects; without a selection all.
	 *
	 * @param array<string, mixed>        $said        Document that the ability returned.
	 * @param array<string, mixed>        $outputs     Its outputs.
	 * @param list<array<string, string>> $diagnostics Collects projections without a value.
	 * @return array<string, mixed>
	 */
	private function projected( array $said, array $outputs, array &$diagnostics ): array {
		$rows = (array) ( $this->input['output_projections'] ?? [] );
		if ( [] === $rows ) {
			return $outputs;
		}
		$selected = [];
		foreach ( $rows as $index => $row ) {
			$name = (string) ( $row['name'] ?? $row['to'] ?? $row['output'] ?? '' );
			$path = (string) ( $row['pointer'] ?? $row['path'] ?? $row['from'] ?? '' );
			$keys = array_map( static fn( string $key ): string => str_replace( [ '~1', '~0' ], [ '/', '~' ], $key ), explode( str_starts_with( $path, '/' ) ? '/' : '.', ltrim( $path, '/' ) ) );
			$from = $said;
			foreach ( $keys as $key ) {
				$from = is_array( $from ) ? $from[ $key ] ?? null : null;
			}
			if ( '' === $name || null === $from ) {
				/* translators: %s: path of a value. */
				$diagnostics[] = HostAnswer::diagnosis( ErrorCode::RuntimePackageTaskInvalid, Sentence::of( __( 'The output projection has no "name", or the result of the workflow has no value at "%s".', 'codebox' ), sanitize_text_field( $path ) ), sprintf( 'output_projections[%d]', $index ), 'warning' );
				continue;
			}
			$selected[ $name ] = $from;
		}
		return $selected;
	}

	/**
	 * Builds the answer. A missing required artifact makes it a failure.
	 *
	 * @param bool                       $good        Whether the workflow succeeded.
	 * @param array<string, mixed>       $outputs     Outputs.
	 * @param list<array<string, mixed>> $artifacts   Artifacts.
	 * @param list<array<string, mixed>> $diagnostics Diagnoses.
	 * @param array<string, mixed>       $metadata    Ids of the run.
	 * @return array<string, mixed>
	 */
	private function envelope( bool $good, array $outputs, array $artifacts, array $diagnostics, array $metadata ): array {
		$names = array_merge( array_column( $artifacts, 'name' ), array_column( $artifacts, 'type' ) );
		foreach ( $good ? array_diff( $this->input['required_artifacts'], $names ) : [] as $name ) {
			$good = false;
			/* translators: %s: name of an artifact. */
			$diagnostics[] = HostAnswer::diagnosis( ErrorCode::CollectionFailed, Sentence::of( __( 'The workflow did not return the required artifact "%s".', 'codebox' ), sanitize_text_field( $name ) ), 'required_artifacts' );
		}
		$metadata = HostAnswer::filled( $metadata + [ 'workflow' => $this->input['workflow']['id'] ] + (array) ( $this->input['metadata'] ?? [] ) );
		return [
			'schema'      => self::SCHEMA,
			'status'      => $good ? 'success' : 'failed',
			'success'     => $good,
			'package'     => array_intersect_key( $this->input['package'], array_flip( [ 'slug', 'source' ] ) ),
			'outputs'     => [] === $outputs ? (object) [] : $outputs,
			'artifacts'   => $artifacts,
			'diagnostics' => $diagnostics,
			'metadata'    => $metadata,
		];
	}

	/**
	 * Builds the failure about an invalid member of an answer.
	 *
	 * @param string $member Name of the member.
	 */
	private function invalid( string $member ): Failure {
		/* translators: 1: name of a member, 2: name of a schema. */
		return Failure::because( ErrorCode::RuntimeProviderInvalidResult, Sentence::of( __( 'The runtime of the package did not answer with %2$s: its member "%1$s" is invalid.', 'codebox' ), $member, self::SCHEMA ) );
	}
}
