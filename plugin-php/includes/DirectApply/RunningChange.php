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
 * It also removes the mark and the locks of a request that died, when no process changes the site any more.
 */
final class RunningChange {

	private const MARK = 'wp_codebox_running_change';

	/** Locks of WordPress: updates by a person, and automatic ones. */
	private const LOCKS = [ 'core_updater', 'auto_updater' ];

	/** Time in seconds after which WordPress ignores the locks. */
	private const LONGEST = 900;

	/** Value of the mark of a change without locks; otherwise it is the time at which the change began. */
	private const UNLOCKED = 0;

	/** Time in seconds within which a change starts its process. */
	private const START = 5;

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
		$this->settle();
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
		} catch ( Throwable $thrown ) {
			// The process may have died; the locks are released below.
			[] === $held || update_option( self::MARK, self::UNLOCKED, true );
			throw $thrown;
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
			$began   = (int) get_option( self::MARK );
			if ( ! $outcome['running'] && [] === $outcome['failed'] && time() > $began + self::START ) {
				if ( self::UNLOCKED !== $began ) {
					require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
					array_map( [ WP_Upgrader::class, 'release_lock' ], self::LOCKS );
				}
				delete_option( self::MARK );
			}
		} catch ( Throwable $thrown ) {
			// Logs it. The mark stays, so the next request tries again.
			Failure::from( $thrown );
		}
	}
}
