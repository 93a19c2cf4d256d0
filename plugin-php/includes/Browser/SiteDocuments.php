<?php
/**
 * Documents about a contained site: a WordPress that runs in a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** Builds references, handles and leases in their public form. */
final class SiteDocuments {

	/** Facts that every contract of a browser session carries. */
	public const FACTS = [
		'execution'        => 'browser-playground',
		'execution_scope'  => 'disposable-playground',
		'permission_model' => 'runtime-principal',
	];

	private const HYDRATOR = 'wp-codebox/hydrate-browser-blueprint-ref';

	/**
	 * Returns the id of the preview of a site in a session.
	 *
	 * @param string $site_id    Id of the site.
	 * @param string $session_id Id of the session.
	 */
	public static function preview_id( string $site_id, string $session_id ): string {
		return 'preview-' . substr( hash( 'sha256', $site_id . ':' . $session_id ), 0, 16 );
	}

	/**
	 * Returns the scope of a preview below the assets.
	 *
	 * @param string $preview_id Id of the preview.
	 */
	public static function scope( string $preview_id ): string {
		return 's' . substr( hash( 'sha256', $preview_id ), 0, 16 );
	}

	/**
	 * Returns a digest as an object with algorithm and value.
	 *
	 * @param string $value SHA-256.
	 * @return array{algorithm: string, value: string}
	 */
	public static function digest( string $value ): array {
		return [
			'algorithm' => 'sha256',
			'value'     => $value,
		];
	}

	/**
	 * Returns a reference to a blueprint.
	 *
	 * @param string             $key    Key of the runtime.
	 * @param string             $hash   Digest of the runtime.
	 * @param string             $reason `recoverable`, or why it cannot be read.
	 * @param SessionRecord|null $record Session, for the token.
	 * @return array<string, mixed> `wp-codebox/browser-blueprint-ref/v1`.
	 */
	public static function ref( string $key, string $hash, string $reason, ?SessionRecord $record = null ): array {
		$ref    = 'prepared:' . $key . ':' . $hash;
		$good   = 'recoverable' === $reason;
		$states = [
			'recoverable'            => 'available',
			'expired_transient'      => 'expired-transient',
			'input_hash_mismatch'    => 'input-hash-mismatch',
			'incompatible'           => 'input-hash-mismatch',
			'hydratable_ref_missing' => 'hydratable-ref-missing',
		];
		$url    = rest_url( 'wp-codebox/v1/browser-blueprint-ref/' . $ref );
		return [
			'schema'             => 'wp-codebox/browser-blueprint-ref/v1',
			'id'                 => $ref,
			'ref'                => $ref,
			'source'             => 'prepared-runtime-cache',
			'cache_key'          => $key,
			'input_hash'         => $hash,
			'status'             => $good ? 'available' : 'unavailable',
			'hydration_status'   => $states[ $reason ] ?? 'cache-miss',
			'hydratable'         => $good,
			'hydrator_ability'   => self::HYDRATOR,
			'endpoint'           => $url,
			'hydration_endpoint' => $url,
		] + ( null === $record ? [] : [
			'session_id' => $record->session_id,
			'expires_at' => gmdate( 'c', $record->expires_at ),
			'token'      => RefToken::of( $ref, $record ),
		] );
	}

	/**
	 * Returns what a caller stores to find the site again.
	 *
	 * @param string $key  Key of the runtime.
	 * @param string $hash Digest of the runtime.
	 * @return array<string, mixed>
	 */
	public static function recovery( string $key, string $hash ): array {
		return [
			'ability' => 'wp-codebox/get-browser-contained-site-status',
			'input'   => [
				'cache_key'     => $key,
				'input_hash'    => $hash,
				'source_digest' => $hash,
			],
		];
	}

	/**
	 * Returns the handle of a site as one text.
	 *
	 * @param string $key  Key of the runtime.
	 * @param string $hash Digest of the runtime.
	 */
	public static function handle( string $key, string $hash ): string {
		return 'browser-contained-site:' . $key . ':' . $hash;
	}

	/**
	 * Returns the lease of a preview.
	 *
	 * @param SessionRecord        $record Session.
	 * @param string               $status `active` or `released`.
	 * @param array<string, mixed> $given  Lease as the caller gave it.
	 * @return array<string, mixed> `wp-codebox/preview-lease/v1`.
	 */
	public static function lease( SessionRecord $record, string $status, array $given = [] ): array {
		return [
			'schema'             => 'wp-codebox/preview-lease/v1',
			'preview_id'         => $record->preview_id,
			'session_id'         => $record->session_id,
			'status'             => $status,
			'public_url'         => '',
			'preview_public_url' => '',
			'site_url'           => '',
			'local_url'          => '',
			'lease'              => [
				'status'     => $status,
				'expires_at' => gmdate( 'c', $record->expires_at ),
			],
			// The preview exists only in the page that starts it.
			'reachability'       => [ 'status' => 'browser-only' ],
			'alignment'          => [ 'status' => 'aligned' ],
			'evidence_refs'      => array_slice( array_values( array_filter( (array) ( $given['evidence_refs'] ?? [] ), 'is_array' ) ), 0, 32 ),
			'provenance'         => [ 'generated_by' => 'wp-codebox' ],
		];
	}

	/**
	 * Returns the handle of a contained site.
	 *
	 * @param SessionRecord        $record Session.
	 * @param string               $status Status.
	 * @param array<string, mixed> $more   Further members, which win.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site/v1`.
	 */
	public static function site( SessionRecord $record, string $status, array $more = [] ): array {
		$reused = 'recoverable_prepared_runtime' === $status;
		return $more + [
			'schema'                       => 'wp-codebox/browser-contained-site/v1',
			'site_id'                      => $record->site_id,
			'preview_id'                   => $record->preview_id,
			'session_id'                   => $record->session_id,
			'caller_id'                    => $record->caller_id,
			'status'                       => $status,
			'persistence'                  => 'browser-contained',
			'open_mode'                    => $reused ? 'reuse_prepared_runtime' : 'materialize',
			'reuse_level'                  => $reused ? 'prepared_runtime' : 'none',
			'requires_materialization'     => true,
			'prepared_runtime_recoverable' => in_array( $status, [ 'ready', 'recoverable_prepared_runtime' ], true ),
			'live'                         => false,
			'current'                      => false,
			'materialized'                 => false,
			'source_digest'                => self::digest( $record->input_hash ),
			'recovery'                     => self::recovery( $record->cache_key, $record->input_hash ),
			'recovery_handle'              => self::handle( $record->cache_key, $record->input_hash ),
			'preview'                      => [
				'local_url' => '',
				'scope'     => self::scope( $record->preview_id ),
			],
			'prepared_runtime'             => [
				'cache_key'  => $record->cache_key,
				'input_hash' => $record->input_hash,
				'status'     => 'ready' === $status || $reused ? 'available' : 'unavailable',
				'selected'   => true,
			],
			'session'                      => self::FACTS + [
				'id'         => $record->session_id,
				'caller_id'  => $record->caller_id,
				'expires_at' => gmdate( 'c', $record->expires_at ),
				'isolation'  => $record->isolation,
			],
		];
	}
}
