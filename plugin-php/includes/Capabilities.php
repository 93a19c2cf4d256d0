<?php
/**
 * Capabilities to run, review, apply and change the settings.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Defines four meta capabilities. On a single site each maps to `manage_options`. On a network only super
 * admins have them, as with WordPress's `edit_plugins`; `manage_network_options` would not be enough, because
 * the administrator of one site can add that capability to a role of the site.
 *
 * A site changes the mapping with WordPress's `map_meta_cap` filter, at a later priority than this class; readme.txt has
 * an example that gives a role one of the four. Without that filter, a role that has the capability gains nothing. A filter
 * that maps the capability to itself for every user takes it away from administrators, whose role does not have it. On a
 * network, put the filter into code of the network (must-use plugins or network-activated plugins); every site
 * administrator can then add the mapped capability to a role of the own site.
 */
final class Capabilities {

	public const RUN      = 'wp_codebox_run';
	public const REVIEW   = 'wp_codebox_review';
	public const APPLY    = 'wp_codebox_apply';
	public const SETTINGS = 'wp_codebox_settings';

	/** Registers the mapping of the four capabilities. */
	public function register(): void {
		add_filter( 'map_meta_cap', [ $this, 'map' ], 10, 3 );
	}

	/**
	 * Maps the meta capabilities to primitive ones.
	 *
	 * @param mixed $caps    Primitive capabilities so far.
	 * @param mixed $cap     Requested capability.
	 * @param mixed $user_id User id; 0 when no user is logged in.
	 * @return mixed
	 */
	public function map( mixed $caps, mixed $cap, mixed $user_id = 0 ): mixed {
		if ( ! in_array( $cap, [ self::RUN, self::REVIEW, self::APPLY, self::SETTINGS ], true ) ) {
			return $caps;
		}
		$user = is_numeric( $user_id ) ? (int) $user_id : 0;
		// For user 0, is_super_admin() checks the current user instead.
		if ( $user < 1 || ( is_multisite() && ! is_super_admin( $user ) ) ) {
			return [ 'do_not_allow' ];
		}
		return [ is_multisite() ? 'manage_network_options' : 'manage_options' ];
	}

	/**
	 * Checks whether the current user has a capability.
	 *
	 * @param string ...$any Capabilities, one of which is enough.
	 */
	public function allows( string ...$any ): bool {
		foreach ( $any as $capability ) {
			if ( $this->grants( get_current_user_id(), $capability ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Checks whether a user has a capability.
	 *
	 * @param int    $user_id    User id; 0 when no user is logged in.
	 * @param string $capability One of the four capabilities.
	 */
	public function grants( int $user_id, string $capability ): bool {
		// On a network WP_User::has_cap() calls is_super_admin( 0 ), which checks the current user instead.
		if ( $user_id < 1 ) {
			return false;
		}
		// phpcs:ignore WordPress.WP.Capabilities -- mapped above.
		$allowed = get_current_user_id() === $user_id ? current_user_can( $capability ) : user_can( $user_id, $capability );
		/**
		 * Filters whether a user may use Codebox. The filter can only restrict: a user without the capability
		 * stays refused, and any value but `true` refuses. Visitors without an account are refused before the
		 * filter runs.
		 *
		 * @param bool   $allowed    Whether the user has the capability.
		 * @param string $capability `wp_codebox_run`, `wp_codebox_review`, `wp_codebox_apply` or `wp_codebox_settings`.
		 * @param int    $user_id    User to check, usually the current user.
		 */
		$filtered = apply_filters( 'wp_codebox_can_run_agent_task', $allowed, $capability, $user_id );
		return PermissionFilter::narrowed( 'wp_codebox_can_run_agent_task', $allowed, $filtered );
	}
}
