<?php
/**
 * Who may run, review and apply.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Three meta capabilities, each mapped to an administrator's (on multisite: a
 * network administrator's) primitive capability. A site changes the mapping with
 * core's own `map_meta_cap` filter; ours can only take permission away.
 *
 * To let a role do one of the three, map it to itself after us and give the role that capability:
 *
 *     add_filter( 'map_meta_cap', fn( $caps, $cap ) => 'wp_codebox_review' === $cap ? [ $cap ] : $caps, 20, 2 );
 *     get_role( 'editor' )->add_cap( 'wp_codebox_review' );
 *
 * A capability that a role merely holds counts for nothing without that filter: on a network the
 * administrator of one site may edit its roles, but not what the host is used for.
 */
final class Capabilities {

	public const RUN    = 'wp_codebox_run';
	public const REVIEW = 'wp_codebox_review';
	public const APPLY  = 'wp_codebox_apply';

	/** Registers the mapping. */
	public function register(): void {
		add_filter( 'map_meta_cap', [ $this, 'map' ], 10, 2 );
	}

	/**
	 * Maps our capabilities to primitive ones.
	 *
	 * @param mixed $caps Primitive capabilities so far.
	 * @param mixed $cap  Capability asked for.
	 * @return mixed
	 */
	public function map( mixed $caps, mixed $cap ): mixed {
		if ( ! in_array( $cap, [ self::RUN, self::REVIEW, self::APPLY ], true ) ) {
			return $caps;
		}
		return [ is_multisite() ? 'manage_network_options' : 'manage_options' ];
	}

	/**
	 * Whether the current user may do it.
	 *
	 * @param string ...$any Of the three; one that is held is enough.
	 */
	public function allows( string ...$any ): bool {
		foreach ( $any as $capability ) {
			if ( $this->holds( $capability ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Whether the current user has a capability.
	 *
	 * @param string $capability One of the three.
	 */
	private function holds( string $capability ): bool {
		return $this->grants( get_current_user_id(), $capability );
	}

	/**
	 * Whether a user may do it.
	 *
	 * @param int    $user_id    The user; 0 for none.
	 * @param string $capability One of the three.
	 */
	public function grants( int $user_id, string $capability ): bool {
		// phpcs:ignore WordPress.WP.Capabilities -- mapped above.
		$allowed = get_current_user_id() === $user_id ? current_user_can( $capability ) : user_can( $user_id, $capability );
		/**
		 * Filters whether a user may use WP Codebox. The answer can only narrow: a user
		 * without the capability stays refused, and anything but `true` refuses.
		 *
		 * @param bool   $allowed    Whether the user has the capability.
		 * @param string $capability `wp_codebox_run`, `wp_codebox_review` or `wp_codebox_apply`.
		 * @param int    $user_id    Who it is about, mostly the current user; 0 for none.
		 */
		$filtered = apply_filters( 'wp_codebox_can_run_agent_task', $allowed, $capability, $user_id );
		return $allowed && true === $filtered;
	}
}
