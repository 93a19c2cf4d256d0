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

/** Reads from the hook which adapter would answer first. */
final class ApplyAdapters {

	/** Filter that adapters answer. */
	public const HOOK = 'wp_codebox_apply_approved_artifact';

	/**
	 * Returns the adapter that would apply a change: the name of one of this plugin, `plugin` for one of another plugin,
	 * `none` when there is none.
	 *
	 * @param Settings $settings Settings that turn the own adapters on.
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
