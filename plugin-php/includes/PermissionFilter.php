<?php
/**
 * Filters that can only restrict.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * A permission filter of this plugin can take a right away and never give one. A callback that tries to give one
 * has no effect; with WP_DEBUG its author gets a notice, because nothing else shows why the callback is ignored.
 */
final class PermissionFilter {

	/**
	 * Returns the permission after the filter: granted only when it was granted before and the filter returned `true`.
	 *
	 * @param string $hook     Name of the filter.
	 * @param bool   $allowed  Whether the permission was granted before the filter.
	 * @param mixed  $filtered Value that the filter returned.
	 */
	public static function narrowed( string $hook, bool $allowed, mixed $filtered ): bool {
		if ( ! $allowed && true === $filtered ) {
			self::widened( $hook );
		}
		return $allowed && true === $filtered;
	}

	/**
	 * Tells the author of a callback that it tried to give a right.
	 *
	 * @param string $hook Name of the filter.
	 */
	public static function widened( string $hook ): void {
		_doing_it_wrong(
			esc_html( $hook ),
			esc_html__( 'This filter can only restrict. A callback returned more than the settings and capabilities allow; the difference is ignored. To grant a right, use the settings of Codebox or the filter map_meta_cap.', 'codebox' ),
			esc_html( VERSION )
		);
	}
}
