<?php
/**
 * Makes a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Connector\TrustedCallers;
use WPCodebox\Failure;
use WPCodebox\TaskInput\RefusedFields;

defined( 'ABSPATH' ) || exit;

/**
 * Turns the input into what the server keeps: the prepared runtime and the record of the session. The links to files are
 * made when the blueprint is read, so they are never stored.
 */
final class SessionMaker {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param SessionInput              $inputs    Reads the input.
	 * @param CodeSources               $sources   Finds the code of the session.
	 * @param SessionStore              $sessions  Records of sessions.
	 * @param PreparedRuntimes          $runtimes  Prepared runtimes.
	 * @param RuntimeAccess             $access    What the page may use on this site.
	 * @param TrustedCallers            $callers   Authorizes the caller.
	 * @param SessionAudit              $audit     Records new sessions.
	 * @param \Closure(): SessionAssets $assets    Returns the assets.
	 */
	public function __construct(
		private readonly SessionInput $inputs,
		private readonly CodeSources $sources,
		private readonly SessionStore $sessions,
		private readonly PreparedRuntimes $runtimes,
		private readonly RuntimeAccess $access,
		private readonly TrustedCallers $callers,
		private readonly SessionAudit $audit,
		private readonly \Closure $assets
	) {}

	/**
	 * Makes and stores a session.
	 *
	 * @param array<string, mixed> $input  Ability input.
	 * @param string               $schema Name of its schema.
	 * @throws Failure When the input cannot have its effect, or the assets are missing.
	 */
	public function make( array $input, string $schema ): MadeSession {
		$input    = $this->inputs->opened( $input, $schema );
		$owner    = Owner::current( $this->callers, $input );
		$runtime  = (array) ( $input['runtime'] ?? [] );
		$prepared = (array) ( $runtime['prepared'] ?? [] ) + (array) ( $runtime['prepared_runtime'] ?? [] );
		$artifact = (array) ( $input['site_blueprint_artifact'] ?? [] );
		$access   = $this->access->of( $input );
		$files    = GuestFiles::artifacts( (array) ( $input['artifact_files'] ?? [] ) );
		$bundles  = GuestFiles::bundles( (array) ( $input['agent_bundles'] ?? [] ) );
		[ $blueprint, $roots ] = $this->planned( $input, $runtime, $prepared, $artifact, [ ...$files['steps'], ...$bundles['steps'] ] );

		$session_id = (string) ( $input['sandbox_session_id'] ?? '' );
		$session_id = '' === $session_id ? 'browser-session-' . str_replace( '-', '', wp_generate_uuid4() ) : $session_id;
		if ( 1 !== preg_match( '/^[\x21-\x7e]{1,200}$/D', $session_id ) ) {
			throw Failure::invalid_input( __( '"sandbox_session_id" must have 1 to 200 printable ASCII characters without spaces.', 'codebox' ), [], [ 'field' => 'sandbox_session_id' ] );
		}
		$assets   = ( $this->assets )();
		$baseline = [] === $roots ? [] : $assets->roots( $roots, $session_id );
		$steps    = [ ...CodeSources::activation( $baseline ), ...( $blueprint['steps'] ?? [] ) ];
		if ( [] !== $steps ) {
			$blueprint['steps'] = $steps;
		}
		// The real scope depends on ids, these on the digest, and the digest on the engine. Any scope gives the same engine.
		$engine  = SiteStatus::engine( $assets->contract( 's0', $session_id ) );
		$archive = static fn( array $row ): array => [ $row['target'], $row['archive']['sha256'], $row['overlay']['sha256'] ?? '' ];
		$hash    = $this->hash( $prepared, [ 'engine' => $engine, 'blueprint' => $blueprint, 'roots' => array_map( $archive, $baseline ), 'artifact' => (string) ( $artifact['id'] ?? '' ) ] );
		$key     = $this->key( $prepared, $owner, $hash );
		$preview = SiteDocuments::preview_id( $key, $session_id );
		$now     = time();
		$until   = $now + PreparedRuntimes::ttl( $prepared, $artifact );
		$scope   = SiteDocuments::scope( $preview );
		$urls    = PlaygroundUrls::of( $contract = $assets->contract( $scope, $session_id ), (array) ( $input['playground'] ?? [] ) );
		if ( ! $urls['own'] && [] !== $roots ) {
			throw RefusedFields::refusal( 'roots', __( 'plugins and themes of this site run only with the browser runtime that this site serves', 'codebox' ), __( 'Leave "playground" out, or start without plugins and themes of this site.', 'codebox' ) );
		}
		$record  = new SessionRecord( $session_id, $key, $preview, $key, $hash, $owner->caller_id, (string) $contract['isolation'], $owner->user_id, get_current_blog_id(), $now, $until, Hydration::baseline( $baseline ) );
		$plan    = ! empty( $input['preview_only'] ) ? null : RunnerPlan::of( (array) ( $input['browser_runner'] ?? [] ), $bundles['rows'] );
		$stored  = [
			'cache_key'  => $key,
			'input_hash' => $hash,
			'session_id' => $session_id,
			'created_at' => $now,
			'expires_at' => $until,
			'scope'      => $scope,
			'engine'     => $engine,
			'blueprint'  => $blueprint,
			'roots'      => $roots,
			'baseline'   => $record->baseline,
			'runner'     => $plan,
			'task'       => SessionInput::task( $input ),
			'urls'       => $urls,
			'access'     => $access['document'],
			'provenance' => array_filter( [ 'site_blueprint_artifact' => array_intersect_key( $artifact, array_flip( [ 'schema', 'id', 'provenance' ] ) ) ] ),
		];
		if ( strlen( (string) wp_json_encode( $stored ) ) > PreparedRuntimes::MOST_BYTES ) {
			throw Failure::invalid_input( __( 'The files and steps of the session are larger than 8 MB; put large code into a plugin of this site and name the plugin in "roots".', 'codebox' ) );
		}
		$this->sessions->keep( $record );
		try {
			$this->audit->created( $record, $owner );
		} catch ( Failure $failure ) {
			// Ends the session: nothing may be downloaded for a session that is not in the audit log.
			$this->sessions->forget( $session_id );
			throw $failure;
		}
		$kept = false !== ( $prepared['enabled'] ?? true ) && false !== ( $prepared['cache'] ?? true );
		if ( $kept ) {
			$this->runtimes->keep( $stored );
		}
		return new MadeSession( $input, $owner, $record, $stored, $contract, $files['refs'], $access['missing'], $kept );
	}

	/**
	 * Joins blueprints and code.
	 *
	 * @param array<string, mixed>       $input    Input.
	 * @param array<string, mixed>       $runtime  `runtime` of the input.
	 * @param array<string, mixed>       $prepared `runtime.prepared` of the input.
	 * @param array<string, mixed>       $artifact `site_blueprint_artifact` of the input.
	 * @param list<array<string, mixed>> $files    Steps that write files.
	 * @return array{array<string, mixed>, list<array{kind: string, slug: string}>} Blueprint and roots.
	 */
	private function planned( array $input, array $runtime, array $prepared, array $artifact, array $files ): array {
		$merge = new BlueprintMerge();
		$first = array_filter(
			[
				'site_blueprint_artifact.blueprint' => $artifact['blueprint'] ?? [],
				'runtime.prepared.blueprint'        => $prepared['blueprint'] ?? [],
				'blueprint'                         => $input['blueprint'] ?? [],
			]
		);
		array_walk( $first, static fn( array $blueprint, string $field ) => $merge->add( $field, $blueprint ) );
		foreach ( $merge->plugins() as $slug ) {
			$input['roots'][] = [ 'kind' => 'plugin', 'slug' => $slug ];
		}
		$code = $this->sources->of( $input );
		$merge->add_steps( 'runtime', [ ...GuestFiles::overlays( $runtime ), ...$files, ...$code['steps'] ] );
		$merge->add_steps( 'runtime.bootstrap', (array) ( $runtime['bootstrap'] ?? [] ) );
		$merge->add( 'post_runtime_blueprint', (array) ( $input['post_runtime_blueprint'] ?? [] ) );
		$merge->add( '', '' === ( $input['landing_page'] ?? '' ) ? [] : [ 'landingPage' => $input['landing_page'] ] );
		return [ $merge->blueprint(), $code['roots'] ];
	}

	/**
	 * Returns the digest of the sources.
	 *
	 * @param array<string, mixed> $prepared `runtime.prepared` of the input.
	 * @param array<string, mixed> $sources  What the sandbox is made of.
	 */
	private function hash( array $prepared, array $sources ): string {
		$given = strtolower( (string) ( $prepared['input_hash'] ?? '' ) );
		if ( '' !== $given && 1 !== preg_match( '/^[0-9a-f]{64}$/D', $given ) ) {
			throw Failure::invalid_input( __( 'input_hash must have 64 hex digits.', 'codebox' ), [], [ 'field' => 'runtime.prepared.input_hash' ] );
		}
		return '' !== $given ? $given : hash( 'sha256', (string) wp_json_encode( self::sorted( $sources ), JSON_UNESCAPED_SLASHES ) );
	}

	/**
	 * Returns data with the members of every object in one order.
	 *
	 * @param mixed $data Data.
	 */
	private static function sorted( mixed $data ): mixed {
		if ( ! is_array( $data ) ) {
			return $data;
		}
		array_is_list( $data ) || ksort( $data, SORT_STRING );
		return array_map( [ self::class, 'sorted' ], $data );
	}

	/**
	 * Returns the key of the runtime: stable for the caller and the sources.
	 *
	 * @param array<string, mixed> $prepared `runtime.prepared` of the input.
	 * @param Owner                $owner    Caller.
	 * @param string               $hash     Digest of the sources.
	 */
	private function key( array $prepared, Owner $owner, string $hash ): string {
		$given = (string) ( $prepared['cache_key'] ?? '' );
		if ( '' !== $given && 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/D', $given ) ) {
			throw Failure::invalid_input( __( '"cache_key" must have 1 to 100 letters, digits, dots, hyphens and underscores, and begin with a letter or digit.', 'codebox' ), [], [ 'field' => 'runtime.prepared.cache_key' ] );
		}
		return '' !== $given ? $given : 'prepared-' . substr( hash( 'sha256', $owner->caller_id . ':' . $hash ), 0, 16 );
	}
}
