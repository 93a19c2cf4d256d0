<?php
/**
 * Returns the blueprint of a session to its owner.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Checks the user, then joins the stored runtime with fresh links to the files of this site. */
final class Hydration {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param SiteStatus                $sites    Finds runtimes.
	 * @param SessionStore              $sessions Records of sessions.
	 * @param \Closure(): SessionAssets $assets   Returns the assets.
	 */
	public function __construct(
		private readonly SiteStatus $sites,
		private readonly SessionStore $sessions,
		private readonly \Closure $assets
	) {}

	/**
	 * Answers hydrate-browser-blueprint-ref.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-blueprint-hydration/v1`.
	 * @throws Failure With a code per reason.
	 */
	public function hydrate( array $input ): array {
		$ref   = trim( (string) ( $input['ref'] ?? '' ) );
		$token = trim( (string) ( $input['token'] ?? '' ) );
		$named = '' === $token ? null : RefToken::read( $token, $ref );
		$ref   = $named['ref'] ?? $ref;
		$parts = [];
		if ( '' !== $ref && 1 !== preg_match( '/^prepared:([A-Za-z0-9][A-Za-z0-9._-]{0,99}):([0-9a-f]{64})$/D', $ref, $parts ) ) {
			throw RefFailure::because( 'hydratable_ref_missing', [ 'ref' => sanitize_text_field( $ref ) ] );
		}
		$reference = SiteReference::from( [] === $parts ? array_intersect_key( $input, array_flip( [ 'cache_key', 'input_hash' ] ) ) : [ 'cache_key' => $parts[1], 'input_hash' => $parts[2] ] );
		if ( '' === $reference->site_id || '' === $reference->digest ) {
			throw RefFailure::because( 'hydratable_ref_missing', [] );
		}
		$found   = $this->sites->find( $reference );
		$runtime = $found['runtime'];
		if ( null === $runtime ) {
			if ( 'assets_missing' === $found['reason'] ) {
				// Throws the failure that says what is missing.
				( $this->assets )()->contract( 's0', 's0' );
			}
			throw RefFailure::because( $found['reason'], SiteDocuments::ref( $reference->site_id, $reference->digest, $found['reason'] ) );
		}
		if ( null !== $named && $named['session_id'] !== $runtime['session_id'] ) {
			throw RefFailure::because( 'replayed', SiteDocuments::ref( $reference->site_id, $reference->digest, 'replayed' ) );
		}
		$record = $this->sessions->get( $runtime['session_id'] );
		return [
			'success'       => true,
			'schema'        => 'wp-codebox/browser-blueprint-hydration/v1',
			'blueprint_ref' => SiteDocuments::ref( $runtime['cache_key'], $runtime['input_hash'], 'recoverable', $record ),
			'blueprint'     => $this->blueprint( $runtime ),
			'provenance'    => $runtime['provenance'] + [
				'source'     => 'prepared-runtime-cache',
				'session_id' => $record->session_id,
				'created_at' => gmdate( 'c', $record->created_at ),
			],
		];
	}

	/**
	 * Returns the whole blueprint of a session.
	 *
	 * @param array<string, mixed> $runtime Prepared runtime.
	 * @return array<string, mixed>
	 */
	public function blueprint( array $runtime ): array {
		$blueprint = $runtime['blueprint'];
		if ( null !== $runtime['runner'] ) {
			$blueprint['steps'] = [ ...$blueprint['steps'], ...RunnerPlan::steps( $runtime['runner'], $runtime['task'], $runtime['session_id'] ) ];
		}
		if ( ! $runtime['urls']['own'] ) {
			// Another engine gets no links to files of this site.
			return $blueprint;
		}
		$assets  = ( $this->assets )();
		$codebox = $assets->contract( $runtime['scope'], $runtime['session_id'] )['codebox'];
		$roots   = [] === $runtime['roots'] ? [] : $assets->roots( $runtime['roots'], $runtime['session_id'] );
		if ( self::baseline( $roots ) !== $runtime['baseline'] ) {
			// Changes are later compared with the code in the record of the session, so the session must start with the same code.
			throw RefFailure::because( 'input_hash_mismatch', SiteDocuments::ref( $runtime['cache_key'], $runtime['input_hash'], 'input_hash_mismatch' ) );
		}
		return $blueprint + [
			'codebox' => [
				'session_id' => $runtime['session_id'],
				'roots'      => $roots,
			] + $codebox,
		];
	}

	/**
	 * Returns the code with which a session began. The files of a bundle over it are not included, because they count as changes.
	 *
	 * @param list<array<string, mixed>> $roots Directories with their archives.
	 * @return list<array{target: string, archive: string}>
	 */
	public static function baseline( array $roots ): array {
		return array_map(
			static fn( array $row ): array => [
				'target'  => $row['target'],
				'archive' => $row['archive']['sha256'],
			],
			$roots
		);
	}
}
