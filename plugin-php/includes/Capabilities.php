<?php
/**
 * Who may run, review, apply and change the settings.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Four meta capabilities. On a single site each maps to `manage_options`. On a network only super
 * admins have them, as with core's `edit_plugins`: `manage_network_options` alone is a capability
 * like any other, which the administrator of one site can add to a role of that site.
 *
 * A site changes the mapping with core's own `map_meta_cap` filter after us, which replaces our answer.
 * To let a role do one of the four, map it to itself and give the role that capability:
 *
 *     add_filter( 'map_meta_cap', fn( $caps, $cap ) => 'wp_codebox_review' === $cap ? [ $cap ] : $caps, 20, 2 );
 *     get_role( 'editor' )->add_cap( 'wp_codebox_review' );
 *
 * A capability that a role merely holds counts for nothing without that filter. On a network the filter
 * belongs in code of the network (must-use plugins, network-activated plugins), and every site's
 * administrator can then give the mapped capability to a role of the own site.
 */
final class Capabilities {

	public const RUN      = 'wp_codebox_run';
	public const REVIEW   = 'wp_codebox_review';
	public const APPLY    = 'wp_codebox_apply';
	public const SETTINGS = 'wp_codebox_settings';

	/** Registers the mapping. */
	public function register(): void {
		add_filter( 'map_meta_cap', [ $this, 'map' ], 10, 3 );
	}

	/**
	 * Maps our capabilities to primitive ones.
	 *
	 * @param mixed $caps    Primitive capabilities so far.
	 * @param mixed $cap     Capability asked for.
	 * @param mixed $user_id The user; 0 for none.
	 * @return mixed
	 */
	public function map( mixed $caps, mixed $cap, mixed $user_id = 0 ): mixed {
		if ( ! in_array( $cap, [ self::RUN, self::REVIEW, self::APPLY, self::SETTINGS ], true ) ) {
			return $caps;
		}
		$user = is_numeric( $user_id ) ? (int) $user_id : 0;
		// For user 0 is_super_admin() answers for the current user.
		if ( $user < 1 || ( is_multisite() && ! is_super_admin( $user ) ) ) {
			return [ 'do_not_allow' ];
		}
		return [ is_multisite() ? 'manage_network_options' : 'manage_options' ];
	}

	/**
	 * Whether the current user may do it.
	 *
	 * @param string ...$any Of the four; one that is held is enough.
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
	 * Whether a user may do it.
	 *
	 * @param int    $user_id    The user; 0 for none.
	 * @param string $capability One of the four.
	 */
	public function grants( int $user_id, string $capability ): bool {
		// On a network WP_User::has_cap() asks is_super_admin( 0 ), which answers for the current user.
		if ( $user_id < 1 ) {
			return false;
		}
		// phpcs:ignore WordPress.WP.Capabilities -- mapped above.
		$allowed = get_current_user_id() === $user_id ? current_user_can( $capability ) : user_can( $user_id, $capability );
		/**
		 * Filters whether a user may use Codebox. The answer can only narrow: a user
		 * without the capability stays refused, and anything but `true` refuses. Visitors without
		 * an account are refused before it.
		 *
		 * @param bool   $allowed    Whether the user has the capability.
		 * @param string $capability `wp_codebox_run`, `wp_codebox_review` or `wp_codebox_apply`.
		 * @param int    $user_id    Who it is about, mostly the current user.
		 */
		$filtered = apply_filters( 'wp_codebox_can_run_agent_task', $allowed, $capability, $user_id );
		return $allowed && true === $filtered;
	}
}
