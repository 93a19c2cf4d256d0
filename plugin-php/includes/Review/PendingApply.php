<?php
/**
 * Applies a staged change when a user accepts it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Review;

use Closure;
use Throwable;
use WP_Error;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\PermissionFilter;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The host plugin that stores a staged change calls this handler when a user decides. The handler checks who may accept, and
 * applies exactly what was staged. It refuses when bundle or target have changed since.
 */
final class PendingApply {

	private const FIELDS = [ 'artifact_id', 'run_id', 'approved_files', 'approver', 'apply_target', 'manifest_sha256', 'approval', 'confirm_browser_origin', 'confirm_sensitive' ];

	/**
	 * Creates the handler with its dependencies.
	 *
	 * @param Capabilities $capabilities Permission checks of the user.
	 * @param Closure      $services     Returns the Services.
	 */
	public function __construct(
		private readonly Capabilities $capabilities,
		private readonly Closure $services
	) {}

	/** Registers the handler for host plugins that store pending actions. */
	public function register(): void {
		add_filter( 'wp_codebox_pending_apply_artifact_handlers', [ $this, 'handlers' ] );
	}

	/**
	 * Adds the handler for the pending actions that this plugin creates.
	 *
	 * @param mixed $handlers Handlers by kind.
	 * @return array<string, array{apply: callable, can_resolve: callable}>
	 */
	public function handlers( mixed $handlers ): array {
		$handlers                       = is_array( $handlers ) ? $handlers : [];
		$handlers[ StageService::KIND ] = [
			'apply'       => [ $this, 'apply' ],
			'can_resolve' => [ $this, 'can_resolve' ],
		];
		return $handlers;
	}

	/**
	 * Applies what was staged, as the current user, who accepted it.
	 *
	 * @param mixed $apply_input Staged `apply_input`.
	 * @return array<string, mixed>|WP_Error `wp-codebox/artifact-apply/v1`.
	 */
	public function apply( mixed $apply_input ): array|WP_Error {
		try {
			$operator = defined( 'WP_CLI' ) && \WP_CLI && 0 === get_current_user_id();
			if ( ! $operator && ! $this->capabilities->allows( Capabilities::APPLY ) ) {
				throw Failure::because(
					ErrorCode::Forbidden,
					/* translators: %s: name of a capability. */
					Sentence::of( __( 'Only a user with the capability %s can accept a staged change; make such a user the current one before the change is applied.', 'codebox' ), Capabilities::APPLY )
				);
			}
			$input    = $this->input( $apply_input );
			$services = ( $this->services )();
			$found    = $services->artifacts->artifact( [ 'artifact_id' => $input['run_id'] ?? $input['artifact_id'] ] );
			if ( ( $found['artifact_id'] ?? '' ) !== $input['artifact_id'] ) {
				throw Failure::because( ErrorCode::ArtifactChanged, __( 'The bundle is not the one that was staged; stage the change again.', 'codebox' ) );
			}
			$input['artifact_id'] = (string) $found['run_id'];
			unset( $input['run_id'] );
			return $services->applies->apply( $input, Authority::User );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
	}

	/**
	 * Checks whether a user may accept or reject a staged apply.
	 *
	 * @param mixed $payload  Pending action as the host plugin stores it.
	 * @param mixed $decision Requested decision, e.g. `accepted`.
	 * @param mixed $user_id  User id.
	 */
	public function can_resolve( mixed $payload = null, mixed $decision = null, mixed $user_id = 0 ): bool {
		$user    = is_numeric( $user_id ) ? (int) $user_id : 0;
		$allowed = $this->capabilities->grants( $user, Capabilities::APPLY );
		/**
		 * Filters whether a user may accept or reject a staged apply. The filter can only restrict: a user
		 * who may not apply stays refused, and any value but `true` refuses.
		 *
		 * @param bool  $allowed  Whether the user has the capability `wp_codebox_apply`.
		 * @param mixed $payload  Pending action as the host plugin stores it.
		 * @param mixed $decision Requested decision, e.g. `accepted`.
		 * @param int   $user_id  User id; 0 when no user is logged in.
		 */
		$filtered = apply_filters( 'wp_codebox_can_resolve_pending_apply_artifact', $allowed, $payload, $decision, $user );
		return PermissionFilter::narrowed( 'wp_codebox_can_resolve_pending_apply_artifact', $allowed, $filtered );
	}

	/**
	 * Returns the staged input, or fails when its form differs from what staging creates.
	 *
	 * @param mixed $apply_input Input as the host plugin stores it.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	private function input( mixed $apply_input ): array {
		$input   = is_array( $apply_input ) ? $apply_input : [];
		$unknown = array_diff( array_keys( $input ), self::FIELDS );
		$bound   = array_filter( array_intersect_key( $input, array_flip( [ 'manifest_sha256', 'approval' ] ) ), static fn( mixed $digest ): bool => is_string( $digest ) && 1 === preg_match( '/^[0-9a-f]{64}$/D', $digest ) );
		if ( [] !== $unknown || ! is_string( $input['artifact_id'] ?? null ) || ! is_array( $input['approved_files'] ?? null ) || 2 !== count( $bound ) ) {
			throw Failure::invalid_input( __( 'The input is not that of a staged change; pass "apply_input" unchanged as stage-artifact-apply returned it.', 'codebox' ) );
		}
		return $input;
	}
}
