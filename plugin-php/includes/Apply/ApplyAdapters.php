<?php
/**
 * The adapters of this site that apply approved changes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\DirectApply\DirectApply;
use WPCodebox\GitBranch\GitBranch;
use WPCodebox\GitBranch\Repository;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/** Finds out from the callbacks of the filter which adapter would answer first. */
final class ApplyAdapters {

	/** Filter that adapters answer. */
	public const HOOK = 'wp_codebox_apply_approved_artifact';

	/**
	 * Returns which adapter would apply a change: its name if it belongs to this plugin, `plugin` if it belongs to
	 * another plugin, `none` when there is no adapter.
	 *
	 * @param Settings $settings Settings that turn this plugin's adapters on.
	 */
	public static function next( Settings $settings ): string {
		global $wp_filter;
		$callbacks = isset( $wp_filter[ self::HOOK ] ) ? $wp_filter[ self::HOOK ]->callbacks : [];
		ksort( $callbacks );
		foreach ( $callbacks as $rows ) {
			foreach ( $rows as $row ) {
				$own = is_array( $row['function'] ) ? $row['function'][0] : null;
				if ( ! $own instanceof DirectApply && ! $own instanceof GitBranch ) {
					return 'plugin';
				}
				if ( $own instanceof GitBranch && Repository::is_set( $settings ) ) {
					return GitBranch::ADAPTER;
				}
				if ( $own instanceof DirectApply && $settings->direct_apply() ) {
					return DirectApply::ADAPTER;
				}
			}
		}
		return 'none';
	}
}
