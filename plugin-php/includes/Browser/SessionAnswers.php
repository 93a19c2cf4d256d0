<?php
/**
 * Summary of a new browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Builds the public answer from what was made. */
final class SessionAnswers {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Hydration $hydration Builds blueprints.
	 */
	public function __construct( private readonly Hydration $hydration ) {}

	/**
	 * Returns the summary of a session.
	 *
	 * @param MadeSession $made Session.
	 * @param string      $dto  Schema id of the summary.
	 * @return array<string, mixed>
	 */
	public function summary( MadeSession $made, string $dto = 'wp-codebox/browser-session-product-dto/v1' ): array {
		$record    = $made->record;
		$lease     = SiteDocuments::lease( $record, 'active' );
		$readiness = $this->readiness( $made );
		$status    = $readiness['ready'] ? 'ready' : 'blocked';
		$ref       = SiteDocuments::ref( $record->cache_key, $record->input_hash, $made->kept ? 'recoverable' : 'cache_miss', $made->kept ? $record : null );
		$input     = $made->input;
		$answer    = [
			'success'              => true,
			'schema'               => $dto,
			'dto_schema'           => $dto,
			'source_schema'        => 'wp-codebox/browser-playground-session/v1',
			'preview_only'         => ! empty( $input['preview_only'] ),
			'status'               => $status,
			'session_id'           => $record->session_id,
			'session'              => $this->session( $made ),
			'contained_site'       => $this->site( $made, $status, $ref, $lease ),
			'task'                 => $input['goal'],
			'preview_lease'        => $lease,
			'blueprint_ref'        => $ref,
			'runtime_access'       => $made->runtime['access'],
			'runtime_capabilities' => [
				'schema'       => 'wp-codebox/browser-runtime-capabilities/v1',
				'capabilities' => SessionInput::texts( [ 'php', 'wordpress', 'filesystem', 'preview' ], $input['runtime_capabilities'] ?? [], $input['runtime_recipe']['capabilities'] ?? [], $input['runtime']['capabilities'] ?? [], $input['runtime']['recipe']['capabilities'] ?? [] ),
			],
			'runtime_readiness'    => $readiness,
			'preview_ref'          => [
				'preview_id'    => $record->preview_id,
				'blueprint_ref' => $ref['ref'],
			],
			'artifact_refs'        => $made->files,
			'signals'              => [
				'ready_to_code' => [
					'emitted'      => $readiness['ready'],
					'requirements' => $readiness['requirements'],
					'missing'      => $readiness['missing'],
				],
			],
			'provenance'           => $made->runtime['provenance'] + [
				'engine'        => $made->contract['provenance'],
				'authorization' => $made->owner->authorization,
			],
		] + SiteDocuments::FACTS;
		foreach ( [ 'agent', 'provider', 'model', 'target' ] as $field ) {
			if ( ! empty( $input[ $field ] ) ) {
				$answer[ $field ] = $input[ $field ];
			}
		}
		$answer['preview_boot'] = $this->boot( $made, $lease );
		if ( ! empty( $input['debug'] ) ) {
			$answer['diagnostics'] = [
				'input_hash'    => $record->input_hash,
				'engine'        => $made->runtime['engine'],
				'steps'         => count( $made->runtime['blueprint']['steps'] ),
				'roots'         => $made->runtime['roots'],
				'isolation'     => $record->isolation,
				'runtime_kept'  => $made->kept,
				'expires_after' => $record->expires_at - $record->created_at,
			];
		}
		if ( ! $readiness['ready'] ) {
			$answer['error'] = [
				'code'    => 'wp_codebox_browser_session_prerequisites_missing',
				'message' => $readiness['message'],
			];
		}
		return $answer;
	}

	/**
	 * Returns the summary after the filter of the site, with a reference to the copy that is kept as evidence.
	 *
	 * @param array<string, mixed> $answer Summary.
	 * @param MadeSession          $made   Session.
	 * @return array<string, mixed>
	 */
	public function filtered( array $answer, MadeSession $made ): array {
		$session = $this->raw( $answer, $made );
		/**
		 * Filters the summary of a browser session. Ids, facts, reference and handle stay.
		 *
		 * @param array<string, mixed> $dto     Summary.
		 * @param array<string, mixed> $session Session, `wp-codebox/browser-playground-session/v1`.
		 */
		$dto   = apply_filters( 'wp_codebox_browser_session_product_dto', $answer, $session );
		$fixed = array_flip( [ 'success', 'schema', 'dto_schema', 'source_schema', 'session_id', 'session', 'contained_site', 'blueprint_ref', 'preview_boot', 'execution', 'execution_scope', 'permission_model', 'preview_lease' ] );
		$dto   = array_intersect_key( $answer, $fixed ) + ( is_array( $dto ) ? $dto : $answer );
		/**
		 * Filters how long the summary is kept as evidence, in seconds.
		 *
		 * @param int                  $ttl         Seconds; 0 keeps none.
		 * @param array<string, mixed> $product_dto Summary.
		 * @param array<string, mixed> $session     Session.
		 */
		$ttl = apply_filters( 'wp_codebox_browser_session_evidence_ttl', WEEK_IN_SECONDS, $dto, $session );
		$ttl = is_numeric( $ttl ) ? max( 0, min( WEEK_IN_SECONDS, (int) $ttl ) ) : WEEK_IN_SECONDS;
		if ( $ttl > 0 ) {
			$id = substr( hash( 'sha256', $made->record->user_id . ':' . $made->record->session_id ), 0, 24 );
			set_transient( 'wp_codebox_browser_session_evidence_' . $id, array_intersect_key( $dto, array_flip( [ 'schema', 'session_id', 'status', 'task', 'runtime_readiness' ] ) ) + [ 'session' => $made->record->to_array() ], $ttl );
			$dto['evidence_ref'] = [
				'id'      => $id,
				'storage' => 'transient',
				'ttl'     => $ttl,
			];
		}
		return $dto;
	}

	/**
	 * Returns the summary with the recipe, addresses and task that the server stores for the session.
	 *
	 * @param array<string, mixed> $answer Summary.
	 * @param MadeSession          $made   Session.
	 * @return array<string, mixed> `wp-codebox/browser-playground-session/v1`.
	 */
	public function raw( array $answer, MadeSession $made ): array {
		$recipe = [
			'schema'    => 'wp-codebox/browser-recipe/v1',
			'blueprint' => $made->runtime['blueprint'],
			'roots'     => $made->runtime['roots'],
			'runner'    => $made->runtime['runner'],
		];
		/**
		 * Filters the recipe in the internal form of a session.
		 *
		 * @param array<string, mixed> $dto    Recipe as shown.
		 * @param array<string, mixed> $recipe Recipe.
		 */
		$shown = apply_filters( 'wp_codebox_browser_recipe_dto', $recipe, $recipe );
		return [ 'schema' => 'wp-codebox/browser-playground-session/v1' ] + $answer + [
			'recipe'     => is_array( $shown ) ? $shown : $recipe,
			'playground' => PlaygroundUrls::shown( $made->runtime['urls'] ),
			'task_input' => $made->runtime['task'],
		];
	}

	/**
	 * Returns the member `session`.
	 *
	 * @param MadeSession $made Session.
	 * @return array<string, mixed>
	 */
	private function session( MadeSession $made ): array {
		$record = $made->record;
		$runner = $made->runtime['runner'];
		return SiteDocuments::FACTS + [
			'id'         => $record->session_id,
			'session_id' => $record->session_id,
			'caller_id'  => $record->caller_id,
			'created_at' => gmdate( 'c', $record->created_at ),
			'expires_at' => gmdate( 'c', $record->expires_at ),
			'isolation'  => $record->isolation,
			'principal'  => RunnerPlan::principal( $record->session_id ),
			'roots'      => $record->baseline,
		] + ( null === $runner ? [] : [ 'runner' => array_intersect_key( $runner, array_flip( [ 'path', 'task_path', 'result_path', 'capture_paths', 'invocation' ] ) ) ] )
		+ array_filter( array_intersect_key( $made->input, [ 'orchestrator' => 1 ] ) );
	}

	/**
	 * Returns the handle of the site of a new session.
	 *
	 * @param MadeSession          $made   Session.
	 * @param string               $status `ready` or `blocked`.
	 * @param array<string, mixed> $ref    Reference.
	 * @param array<string, mixed> $lease  Lease.
	 * @return array<string, mixed>
	 */
	private function site( MadeSession $made, string $status, array $ref, array $lease ): array {
		$more = [
			'blueprint_ref' => $ref,
			'preview_lease' => $lease,
		];
		if ( ! $made->kept ) {
			$more += [
				'status'                       => 'disabled',
				'prepared_runtime_recoverable' => false,
			];
		}
		if ( [] !== $made->files ) {
			$more['artifact_digest'] = SiteDocuments::digest( hash( 'sha256', (string) wp_json_encode( $made->files ) ) );
		}
		if ( is_string( $made->input['site_blueprint_artifact']['id'] ?? null ) ) {
			$more['artifact_seed'] = $made->input['site_blueprint_artifact']['id'];
		}
		return SiteDocuments::site( $made->record, $status, $more );
	}

	/**
	 * Returns the configuration with which the page starts the session. Without a stored runtime it has the blueprint itself.
	 *
	 * @param MadeSession          $made  Session.
	 * @param array<string, mixed> $lease Lease.
	 * @return array<string, mixed>
	 */
	private function boot( MadeSession $made, array $lease ): array {
		$boot = PreviewBoot::config( $made->record, $made->runtime, $lease );
		return $made->kept ? $boot : [ 'blueprint' => $this->hydration->blueprint( $made->runtime ) ] + array_diff_key( $boot, [ 'blueprint_ref' => 1 ] );
	}

	/**
	 * Returns whether everything that the task needs is available.
	 *
	 * @param MadeSession $made Session.
	 * @return array<string, mixed> `wp-codebox/browser-runtime-readiness/v1`.
	 */
	private function readiness( MadeSession $made ): array {
		$requirements = [
			'engine'     => true,
			'blueprint'  => true,
			'connectors' => [] === $made->missing,
		];
		/**
		 * Filters what must be there before work in a sandbox in a browser can begin.
		 *
		 * @param array<string, bool>  $requirements Whether it is there, by name.
		 * @param array<string, mixed> $input        Input of the ability.
		 */
		$filtered     = apply_filters( 'wp_codebox_browser_ready_to_code_requirements', $requirements, $made->input );
		$requirements = array_map( static fn( mixed $met ): bool => true === $met, is_array( $filtered ) ? $filtered : $requirements );
		$missing      = array_map( 'strval', array_keys( array_filter( $requirements, static fn( bool $met ): bool => ! $met ) ) );
		return [
			'schema'       => 'wp-codebox/browser-runtime-readiness/v1',
			'status'       => [] === $missing ? 'ready' : 'blocked',
			'ready'        => [] === $missing,
			'requirements' => $requirements,
			'missing'      => $missing,
			'message'      => [] === $missing
				? __( 'The sandbox can start.', 'codebox' )
				/* translators: %s: list of names. */
				: Sentence::of( __( 'The sandbox lacks: %s.', 'codebox' ), implode( ', ', [ ...$missing, ...$made->missing ] ) ),
		];
	}
}
