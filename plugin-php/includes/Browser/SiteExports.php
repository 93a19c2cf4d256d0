<?php
/**
 * Snapshots, exports and plans of contained sites: each a WordPress in a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;
use WPCodebox\TaskInput\RefusedFields;

defined( 'ABSPATH' ) || exit;

/**
 * The contents of a site are in the browser, so the server describes what can be done with them and changes nothing. A change
 * reaches this host only as an approved bundle.
 */
final class SiteExports {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param SiteSessions $sites Opens sites.
	 */
	public function __construct( private readonly SiteSessions $sites ) {}

	/**
	 * Answers snapshot-browser-contained-site.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-snapshot/v1`.
	 */
	public function snapshot( array $input ): array {
		$open = $this->sites->required( $input );
		return [
			'success'  => true,
			'schema'   => 'wp-codebox/browser-contained-site-snapshot/v1',
			'session'  => $open['session'],
			'status'   => array_intersect_key( $open, array_flip( [ 'status', 'resolution', 'open_mode' ] ) ),
			'snapshot' => $this->contract( $open ),
		] + $this->common( $open );
	}

	/**
	 * Answers export-browser-contained-site.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-export/v1`.
	 */
	public function export( array $input ): array {
		$open     = $this->sites->required( $input );
		$contract = $this->contract( $open );
		return [
			'success'  => true,
			'schema'   => 'wp-codebox/browser-contained-site-export/v1',
			'snapshot' => $contract,
			'export'   => [
				'status'        => 'preview-contract',
				'blueprint_ref' => $open['blueprint_ref'],
			] + $contract,
		] + $this->common( $open );
	}

	/**
	 * Answers plan-browser-contained-site-apply.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-apply-plan/v1`.
	 */
	public function plan( array $input ): array {
		$open       = $this->sites->required( $input );
		$operations = [];
		foreach ( array_values( (array) ( $input['changes'] ?? [] ) ) as $number => $change ) {
			$path = (string) ( $change['path'] ?? $change['target'] ?? '' );
			if ( '' === $path ) {
				throw Failure::invalid_input( __( 'An entry of "changes" has no "path"; give the path of the changed file.', 'codebox' ), [], [ 'field' => "changes[$number].path" ] );
			}
			$operations[] = [
				'operation' => in_array( $change['status'] ?? '', [ 'added', 'modified', 'deleted', 'created' ], true ) ? $change['status'] : (string) ( $change['operation'] ?? 'modified' ),
				'path'      => $path,
			];
		}
		$ready = ! empty( $input['apply'] ) && ! empty( $input['allow_host_mutation'] );
		return [
			'success'       => true,
			'schema'        => 'wp-codebox/browser-contained-site-apply-plan/v1',
			'mode'          => ! empty( $input['apply'] ) ? 'apply' : 'preview',
			'host_mutation' => false,
			'plan'          => [
				'schema'            => 'wp-codebox/browser-contained-site-plan/v1',
				'status'            => $ready ? 'ready-for-host-apply' : 'preview-only',
				'operation_count'   => count( $operations ),
				'operations'        => $operations,
				'requires_approval' => true,
				'next'              => [ 'wp-codebox/persist-browser-artifact', 'wp-codebox/apply-approved-artifact' ],
			],
		] + $this->common( $open );
	}

	/**
	 * Answers apply-browser-contained-site-plan: shows the plan, and never changes this host.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-apply-result/v1`.
	 */
	public function apply( array $input ): array {
		$open   = $this->sites->required( $input );
		$asked  = ! empty( $input['allow_host_mutation'] );
		$plan   = (array) ( $input['plan'] ?? [] );
		$answer = [
			'success'       => ! $asked,
			'schema'        => 'wp-codebox/browser-contained-site-apply-result/v1',
			'mode'          => $asked ? 'apply' : 'preview',
			'host_mutation' => false,
			'result'        => [
				'status'          => $asked ? 'not-applied' : 'previewed',
				'operation_count' => count( (array) ( $plan['operations'] ?? [] ) ),
				'applied'         => 0,
			],
		] + $this->common( $open );
		if ( ! $asked ) {
			return $answer;
		}
		$failure = RefusedFields::refusal( 'allow_host_mutation', __( 'this ability only shows what a plan of changes from a browser would do, and writes nothing on this host', 'codebox' ), __( 'Save the changes as a bundle with persist-browser-artifact, review the bundle, and apply it with apply-approved-artifact.', 'codebox' ) );
		return $answer + [ 'error' => $failure->to_array() ];
	}

	/**
	 * Returns where the contents are and how to get them.
	 *
	 * @param array<string, mixed> $open Opened site.
	 * @return array<string, mixed>
	 */
	private function contract( array $open ): array {
		return [
			'status'          => 'preview-contract',
			'captured'        => false,
			'location'        => 'browser',
			'capture'         => [
				'client_method' => 'changedFiles',
				'ability'       => 'wp-codebox/persist-browser-artifact',
			],
			'recovery_handle' => $open['recovery_handle'],
		];
	}

	/**
	 * Returns the members that all answers have.
	 *
	 * @param array<string, mixed> $open Opened site.
	 * @return array<string, mixed>
	 */
	private function common( array $open ): array {
		return array_intersect_key( $open, array_flip( [ 'contained_site', 'source_digest' ] ) ) + SiteDocuments::FACTS;
	}
}
