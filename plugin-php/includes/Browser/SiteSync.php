<?php
/**
 * Synchronisation of contained sites, i.e. of WordPress in browser sessions, through a backend of this site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Passes the operations of site sync to a plugin of this site that hooks two filters. Without such a plugin, each operation fails as unavailable. */
final class SiteSync {

	/** Schema of the answer by operation. */
	public const OPERATIONS = [
		'delegation'          => 'wp-codebox/browser-contained-site-sync-delegation/v1',
		'source-connect'      => 'wp-codebox/browser-contained-site-sync-source/v1',
		'manifest'            => 'wp-codebox/browser-contained-site-sync-manifest/v1',
		'export'              => 'wp-codebox/browser-contained-site-sync-export/v1',
		'apply-plan-generate' => 'wp-codebox/browser-contained-site-sync-apply-plan/v1',
		'apply-plan-validate' => 'wp-codebox/browser-contained-site-sync-validation/v1',
		'apply'               => 'wp-codebox/browser-contained-site-sync-apply-result/v1',
	];

	/** Objects of the backend's answer that are passed on. */
	private const OBJECTS = [ 'source', 'manifest', 'package', 'apply_plan', 'validation', 'result', 'error' ];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param SiteStatus   $sites        Finds sites.
	 * @param Capabilities $capabilities Permission checks of the user.
	 */
	public function __construct(
		private readonly SiteStatus $sites,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Answers one of the sync abilities.
	 *
	 * @param string               $operation Key of `OPERATIONS`.
	 * @param array<string, mixed> $input     Ability input.
	 * @return array<string, mixed>
	 * @throws Failure When the site is another user's, the caller may not change the host, or the backend fails.
	 */
	public function request( string $operation, array $input ): array {
		HostAnswer::bounded( $input, ErrorCode::InputInvalid );
		$reference = SiteReference::from( $input );
		if ( '' !== $reference->site_id && 'foreign' === $this->sites->find( $reference )['reason'] ) {
			throw RefFailure::foreign();
		}
		if ( ! empty( $input['allow_host_mutation'] ) && get_current_user_id() > 0 && ! $this->capabilities->allows( Capabilities::APPLY ) ) {
			throw Failure::invalid_input( __( '"allow_host_mutation" needs the right to apply changes on this site.', 'codebox' ), [], [ 'field' => 'allow_host_mutation' ] );
		}
		/**
		 * Filters whether this site has a backend that synchronises contained sites.
		 *
		 * @param bool $available Whether it has; default false.
		 */
		$available  = true === apply_filters( 'wp_codebox_browser_contained_site_sync_backend_available', false );
		$delegation = $this->delegation( $available, $reference, $input );
		if ( 'delegation' === $operation ) {
			return $delegation;
		}
		$answer = $available ? HostAnswer::of(
			/**
			 * Carries out an operation of a backend that synchronises contained sites. The user has the right to open sessions;
			 * the backend decides whether the user may do more.
			 *
			 * @param array<string, mixed>|\WP_Error|null $result     Answer of an earlier backend: return it unchanged when it
			 *   is not null.
			 * @param string                              $operation  Operation.
			 * @param array<string, mixed>                $input      Input of the ability.
			 * @param array<string, mixed>                $delegation Answer of browser-contained-site-sync-delegation.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_browser_contained_site_sync_request', null, $operation, $input, $delegation ),
			ErrorCode::BrowserContainedSiteSyncFailed,
			__( 'The plugin that synchronises sites in the browser threw an exception; the PHP error log says where.', 'codebox' )
		) : null;
		return null === $answer ? $this->unavailable( $operation ) : $this->checked( $operation, $answer );
	}

	/**
	 * Returns route and ability of each operation, and whether a backend carries them out.
	 *
	 * @param bool                 $available Whether the site has a backend.
	 * @param SiteReference        $reference Site.
	 * @param array<string, mixed> $input     Ability input.
	 * @return array<string, mixed>
	 */
	private function delegation( bool $available, SiteReference $reference, array $input ): array {
		$names = array_keys( self::OPERATIONS );
		return [
			'success'   => $available,
			'schema'    => self::OPERATIONS['delegation'],
			'status'    => $available ? 'available' : 'unavailable',
			'backend'   => [ 'available' => $available ],
			'routes'    => array_combine( $names, array_map( static fn( string $name ): string => rest_url( 'wp-codebox/v1/browser-contained-site-sync/' . $name ), $names ) ),
			'abilities' => array_combine( $names, array_map( static fn( string $name ): string => 'wp-codebox/browser-contained-site-sync-' . $name, $names ) ),
		] + ( empty( $input['contained_site'] ) ? [] : [ 'contained_site' => $input['contained_site'] ] ) + ( '' === $reference->digest ? [] : [ 'source_digest' => SiteDocuments::digest( $reference->digest ) ] );
	}

	/**
	 * Returns the answer when no backend does the operation.
	 *
	 * @param string $operation Operation.
	 * @return array<string, mixed>
	 */
	private function unavailable( string $operation ): array {
		return [
			'success'   => false,
			'schema'    => self::OPERATIONS[ $operation ],
			'status'    => 'unavailable',
			'operation' => $operation,
			'error'     => [
				'code'    => 'unavailable',
				'message' => __( 'No plugin of this site carried out this operation on the site in the browser, so nothing was done.', 'codebox' ),
				'hints'   => [ __( 'Install a plugin that answers the filter wp_codebox_browser_contained_site_sync_backend_available with true, and the filter wp_codebox_browser_contained_site_sync_request with a result.', 'codebox' ) ],
			],
		];
	}

	/**
	 * Returns the backend's answer in the public form.
	 *
	 * @param string $operation Operation.
	 * @param mixed  $answer    Answer of the backend.
	 * @return array<string, mixed>
	 */
	private function checked( string $operation, mixed $answer ): array {
		$code     = ErrorCode::BrowserContainedSiteSyncFailed;
		$document = HostAnswer::document( $answer, $code, $code );
		$members  = [];
		foreach ( self::OBJECTS as $name ) {
			$value = $document[ $name ] ?? null;
			if ( null !== $value && ( is_array( $value ) ? [] !== $value && array_is_list( $value ) : ! is_object( $value ) ) ) {
				/* translators: %s: name of a field. */
				throw Failure::because( $code, Sentence::of( __( 'The plugin that synchronises sites in the browser answered with a field "%s" that is not an object.', 'codebox' ), $name ) );
			}
			$members[ $name ] = $value;
		}
		return [
			'success'   => false !== ( $document['success'] ?? true ),
			'schema'    => self::OPERATIONS[ $operation ],
			'status'    => is_string( $document['status'] ?? null ) ? $document['status'] : 'available',
			'operation' => $operation,
		] + HostAnswer::filled( $members + [ 'validation_hash' => is_string( $document['validation_hash'] ?? null ) ? $document['validation_hash'] : '' ] );
	}
}
