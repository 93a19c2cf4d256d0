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
		// phpcs:ignore WordPress.WP.Capabilities -- mapped above.
		$allowed = current_user_can( $capability );
		/**
		 * Filters whether the current user may use WP Codebox. The answer can only
		 * narrow: a user without the capability stays refused, and anything but
		 * `true` refuses.
		 *
		 * @param bool   $allowed    Whether the user has the capability.
		 * @param string $capability `wp_codebox_run`, `wp_codebox_review` or `wp_codebox_apply`.
		 * @param int    $user_id    The current user; 0 for none.
		 */
		$filtered = apply_filters( 'wp_codebox_can_run_agent_task', $allowed, $capability, get_current_user_id() );
		return $allowed && true === $filtered;
	}
}
