<?php
/**
 * A change of files that is under way.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use Throwable;
use WP_Upgrader;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Changes;

defined( 'ABSPATH' ) || exit;

/**
 * Holds WordPress's update locks during a change, so that no update writes the same files. An option marks the
 * change: when it was interrupted, the next request finds the mark and lets the engine finish or reverse it.
 * The mark and the locks of a request that died are removed when no change can still be under way.
 */
final class RunningChange {

	private const MARK = 'wp_codebox_running_change';

	/** Locks of WordPress: updates by a person, and automatic ones. */
	private const LOCKS = [ 'core_updater', 'auto_updater' ];

	/** Time in seconds after which WordPress ignores the locks, and after which a change has ended. */
	private const LONGEST = 300;

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Calls a function under the locks.
	 *
	 * @param callable(): array<string, mixed> $change Changes files.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_busy` when WordPress is being updated.
	 */
	public function during( callable $change ): array {
		require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
		$held = [];
		try {
			foreach ( self::LOCKS as $lock ) {
				if ( ! WP_Upgrader::create_lock( $lock, self::LONGEST ) ) {
					throw Failure::because( ErrorCode::Busy, __( 'WordPress is being updated, or another change is applied; wait until that has ended.', 'codebox' ) );
				}
				$held[] = $lock;
			}
			update_option( self::MARK, time(), true );
			$result = $change();
			delete_option( self::MARK );
			return $result;
		} finally {
			array_map( [ WP_Upgrader::class, 'release_lock' ], $held );
		}
	}

	/** Settles a change that was interrupted. Without a mark, which WordPress loads with its options, does nothing. */
	public function settle(): void {
		if ( false === get_option( self::MARK ) ) {
			return;
		}
		try {
			$outcome = Changes::recover( $this->site->id() );
			if ( [] === $outcome['failed'] && time() > (int) get_option( self::MARK ) + self::LONGEST ) {
				delete_option( self::MARK );
			}
		} catch ( Throwable $thrown ) {
			// Logs it. The mark stays, so the next request tries again.
			Failure::from( $thrown );
		}
	}
}
