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
 * change: when it was interrupted, the next request finds the mark, lets the engine finish or reverse it, and
 * records how it ended. It also removes the mark and the locks of a request that died, when no process changes
 * the site any more.
 */
final class RunningChange {

	private const MARK = 'wp_codebox_running_change';

	/** Locks of WordPress: updates by a person, and automatic ones. */
	private const LOCKS = [ 'core_updater', 'auto_updater' ];

	/** Time in seconds after which WordPress ignores the locks. */
	private const LONGEST = 900;

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
	 * @param array<string, string>           $about  Audit fields of the change: `event`, `artifact_id`, `run_id`, and
	 *                                                for a roll back `change`.
	 * @param callable(): array<string, mixed> $change Changes files.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_busy` when WordPress is being updated.
	 */
	public function during( array $about, callable $change ): array {
		require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
		$this->settle();
		$mark = [
			'began' => time(),
			'about' => $about,
			'locks' => true,
		];
		$held = [];
		try {
			foreach ( self::LOCKS as $lock ) {
				if ( ! WP_Upgrader::create_lock( $lock, self::LONGEST ) ) {
					throw Failure::because( ErrorCode::Busy, __( 'WordPress is being updated, or another change is applied; wait until that has ended.', 'codebox' ) );
				}
				$held[] = $lock;
			}
			update_option( self::MARK, $mark, true );
			$result = $change();
			delete_option( self::MARK );
			return $result;
		} catch ( Throwable $thrown ) {
			if ( [] !== $held ) {
				// The process may have died. The locks are released below; the next request records the end.
				update_option( self::MARK, [ 'locks' => false ] + $mark, true );
				$this->recover();
			}
			throw $thrown;
		} finally {
			array_map( [ WP_Upgrader::class, 'release_lock' ], $held );
		}
	}

	/** Settles a change that was interrupted. Without a mark, which WordPress loads with its options, does nothing. */
	public function settle(): void {
		$mark = get_option( self::MARK );
		if ( ! is_array( $mark ) || ! $this->recover() || time() <= (int) $mark['began'] + self::START ) {
			return;
		}
		try {
			( new InterruptedChange( $this->site ) )->record( $mark['about'], (int) $mark['began'] );
		} catch ( Throwable $thrown ) {
			// Logs it. The files are settled; a record that cannot be written must not keep the locks.
			Failure::from( $thrown );
		}
		if ( true === $mark['locks'] ) {
			require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
			array_map( [ WP_Upgrader::class, 'release_lock' ], self::LOCKS );
		}
		delete_option( self::MARK );
	}

	/**
	 * Lets the engine finish or reverse what was interrupted. Returns whether nothing is left to do; otherwise a
	 * process is still changing the site, or the next call tries again.
	 */
	private function recover(): bool {
		try {
			$outcome = Changes::recover( $this->site->id() );
			OpcodeCache::drop( $outcome['paths'] );
			return ! $outcome['running'] && [] === $outcome['failed'];
		} catch ( Throwable $thrown ) {
			// Logs it.
			Failure::from( $thrown );
			return false;
		}
	}
}
