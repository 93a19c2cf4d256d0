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

	/** Option with the time since which no process works on a marked change, and the id of its mark. */
	private const IDLE = 'wp_codebox_idle_change';

	/**
	 * Time in seconds within which a living request starts its process, and records the result after the process
	 * has ended.
	 */
	private const GRACE = 5;

	/**
	 * Mark of the change that this request made and has not recorded yet; null without one.
	 *
	 * @var array<string, mixed>|null
	 */
	private ?array $mark = null;

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Calls a function under the locks. When it succeeds, locks and mark stay until `end()`, so that a request that
	 * is killed in between has its result recorded by a later one.
	 *
	 * @param array<string, string>            $about  Audit fields of the change: `event`, `artifact_id`, `run_id`, and
	 *                                                 for a roll back `change`.
	 * @param callable(): array<string, mixed> $change Changes files.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_busy` when WordPress is being updated.
	 */
	public function during( array $about, callable $change ): array {
		require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
		$this->settle();
		$held = [];
		foreach ( self::LOCKS as $lock ) {
			if ( ! WP_Upgrader::create_lock( $lock, self::LONGEST ) ) {
				array_map( [ WP_Upgrader::class, 'release_lock' ], $held );
				throw Failure::because( ErrorCode::Busy, __( 'WordPress is being updated, or another change is applied; wait until that has ended.', 'codebox' ) );
			}
			$held[] = $lock;
		}
		$this->mark = [
			'id'    => wp_generate_uuid4(),
			'began' => time(),
			'about' => $about,
			'locks' => true,
		];
		register_shutdown_function( [ $this, 'leave' ] );
		try {
			update_option( self::MARK, $this->mark, true );
			return $change();
		} catch ( Throwable $thrown ) {
			// The process may have died. The next request records the end.
			$this->recover();
			$this->leave();
			throw $thrown;
		}
	}

	/** Ends a change whose result the audit log has: removes mark and locks. */
	public function end(): void {
		if ( null !== $this->mark ) {
			delete_option( self::MARK );
			delete_option( self::IDLE );
			$this->release();
		}
	}

	/** Releases the locks of a change whose result the audit log may lack. The mark stays for a later request. */
	public function leave(): void {
		if ( null !== $this->mark ) {
			update_option( self::MARK, [ 'locks' => false ] + $this->mark, true );
			$this->release();
		}
	}

	/** Releases the locks. */
	private function release(): void {
		$this->mark = null;
		array_map( [ WP_Upgrader::class, 'release_lock' ], self::LOCKS );
	}

	/** Settles an interrupted change; does nothing without a mark. The mark is an autoloaded option, so reading it is cheap. */
	public function settle(): void {
		$mark = get_option( self::MARK );
		if ( ! is_array( $mark ) || ! $this->is_abandoned( $mark ) ) {
			return;
		}
		try {
			( new InterruptedChange( $this->site ) )->record( $mark['about'], (int) $mark['began'] );
		} catch ( Throwable $thrown ) {
			// Called only to write the server's log. The files are settled, so the locks are released without the record.
			Failure::from( $thrown );
		}
		if ( true === $mark['locks'] ) {
			require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
			array_map( [ WP_Upgrader::class, 'release_lock' ], self::LOCKS );
		}
		delete_option( self::MARK );
		delete_option( self::IDLE );
	}

	/**
	 * Settles the files and checks whether the request that made the change is gone: no process has worked on it for
	 * a while, and the mark still exists. The time counts from the first request that sees no process.
	 *
	 * @param array<string, mixed> $mark Mark of the change.
	 */
	private function is_abandoned( array $mark ): bool {
		if ( ! $this->recover() ) {
			delete_option( self::IDLE );
			return false;
		}
		$idle = get_option( self::IDLE );
		if ( ! is_array( $idle ) || $idle['id'] !== $mark['id'] ) {
			$idle = [
				'id'    => $mark['id'],
				'since' => time(),
			];
			update_option( self::IDLE, $idle, false );
		}
		return time() > (int) $idle['since'] + self::GRACE;
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
			// Called only to write the server's log.
			Failure::from( $thrown );
			return false;
		}
	}
}
