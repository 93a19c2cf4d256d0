<?php
/**
 * Whether a contained site (a WordPress in a browser session) can be recovered.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Changes nothing. `status` is `recoverable` or `miss`; the reason says why. */
final class SiteStatus {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param PreparedRuntimes        $runtimes Prepared runtimes.
	 * @param \Closure(): SessionAssets $assets Returns the assets.
	 */
	public function __construct(
		private readonly PreparedRuntimes $runtimes,
		private readonly \Closure $assets
	) {}

	/**
	 * Answers get-browser-contained-site-status.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-status/v1`.
	 */
	public function status( array $input ): array {
		$reference = SiteReference::from( $input )->required();
		return $this->document( $reference, $this->find( $reference ) );
	}

	/**
	 * Finds the runtime of a site and checks that it still fits this site.
	 *
	 * @param SiteReference $reference Site.
	 * @return array{reason: string, runtime: array<string, mixed>|null}
	 */
	public function find( SiteReference $reference ): array {
		$found = $this->runtimes->find( $reference->site_id, $reference->digest );
		if ( null === $found['runtime'] ) {
			return $found;
		}
		$runtime = $found['runtime'];
		try {
			$engine = self::engine( ( $this->assets )()->contract( $runtime['scope'], $runtime['session_id'] ) );
		} catch ( Failure $failure ) {
			return [
				'reason'  => 'assets_missing',
				'runtime' => null,
			];
		}
		return $engine === $runtime['engine'] ? $found : [
			'reason'  => 'incompatible',
			'runtime' => null,
		];
	}

	/**
	 * Returns what identifies the engine and the WordPress in it.
	 *
	 * @param array<string, mixed> $contract Assets of a session.
	 * @return array<string, string>
	 */
	public static function engine( array $contract ): array {
		return [
			'core'   => (string) ( $contract['codebox']['core']['sha256'] ?? '' ),
			'remote' => isset( $contract['codebox']['core'] ) ? '' : (string) $contract['remote_url'],
		];
	}

	/**
	 * Builds the answer.
	 *
	 * @param SiteReference                                                     $reference Site.
	 * @param array{reason: string, runtime: array<string, mixed>|null} $found     Result of `find()`.
	 * @return array<string, mixed>
	 */
	public function document( SiteReference $reference, array $found ): array {
		$reason  = $found['reason'];
		$runtime = $found['runtime'];
		$good    = null !== $runtime;
		$hash    = $runtime['input_hash'] ?? $reference->digest;
		return [
			'success'                      => $good,
			'schema'                       => 'wp-codebox/browser-contained-site-status/v1',
			'site_id'                      => $reference->site_id,
			'status'                       => $good ? 'recoverable' : 'miss',
			'resolution'                   => $this->resolution( $reason ),
			'open_mode'                    => $good ? 'reuse_prepared_runtime' : 'materialize',
			'reuse_level'                  => $good ? 'prepared_runtime' : 'none',
			'requires_materialization'     => true,
			'prepared_runtime_recoverable' => $good,
			'live'                         => false,
			'current'                      => false,
			'materialized'                 => false,
			'preview_state'                => $good ? 'recoverable' : 'miss',
			'prepare_new_required'         => ! $good,
			'prepared_runtime'             => [
				'cache_key'  => $reference->site_id,
				'input_hash' => $hash,
				'status'     => $good ? 'available' : 'unavailable',
				'reason'     => $reason,
			] + ( $good ? [ 'created_at' => gmdate( 'c', $runtime['created_at'] ) ] : [] ),
			'recovery'                     => SiteDocuments::recovery( $reference->site_id, $hash ),
			'recovery_handle'              => SiteDocuments::handle( $reference->site_id, $hash ),
		] + ( '' === $hash ? [] : [
			'source_digest' => SiteDocuments::digest( $hash ),
			'blueprint_ref' => SiteDocuments::ref( $reference->site_id, $hash, $reason ),
		] ) + SiteDocuments::FACTS;
	}

	/**
	 * Returns how a site was resolved.
	 *
	 * @param string $reason Reason.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-resolution/v1`.
	 */
	private function resolution( string $reason ): array {
		$good = 'recoverable' === $reason;
		return [
			'schema'                       => 'wp-codebox/browser-contained-site-resolution/v1',
			'outcome'                      => $good ? 'recoverable' : 'miss',
			'reason'                       => $good ? 'recoverable_prepared_runtime' : $reason,
			'recoverable'                  => $good,
			'prepared_runtime_recoverable' => $good,
			'live'                         => false,
			'current'                      => false,
			'materialized'                 => false,
			'reused'                       => false,
			'created'                      => false,
			'expired'                      => 'expired_transient' === $reason,
			'miss'                         => ! $good,
			'incompatible'                 => in_array( $reason, [ 'incompatible', 'input_hash_mismatch' ], true ),
			'prepare_new_required'         => ! $good,
		];
	}
}
