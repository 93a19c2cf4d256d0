<?php
/**
 * A change of files that is under way.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use Throwable;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\ChangeLock;
use WPCodebox\Native\Changes;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * An option marks the change, and WordPress's update locks keep other changes of files out. The mark is set before the
 * locks are taken and removed after they are released. The request that makes the change also holds a file lock, which
 * the kernel releases when the request ends for any reason. A later request that finds the mark and gets the file lock
 * lets the extension finish or reverse the change, records how it ended, and removes locks and mark.
 */
final class RunningChange {

	private const MARK = 'wp_codebox_running_change';

	/** Lock of this request, held from the beginning of its change until `end()` or the end of this object. */
	private ?ChangeLock $lock = null;

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
	 * Calls a function while this object has the locks. When it succeeds, locks and mark stay until `end()`: if this
	 * request is killed before that, a later one records the result.
	 *
	 * @param array<string, string>            $about  Audit fields of the change: `event`, `artifact_id`, `run_id`, and
	 *                                                 for a roll back `change`.
	 * @param callable(string): array<string, mixed> $change Changes files. Its argument is a secret for
	 *                                                 `HealthCheck::options()`.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_busy` when WordPress is being updated, or another change is not settled.
	 *                 `wp_codebox_apply_failed` when an interrupted change cannot be settled.
	 */
	public function during( array $about, callable $change ): array {
		$this->lock = ChangeLock::take( $this->site->id() );
		$unsettled  = $this->settle_marked();
		if ( null !== $unsettled ) {
			$this->lock = null;
			throw $unsettled;
		}
		$this->mark = [
			'began' => time(),
			'about' => $about,
			'user'  => get_current_user_id(),
			'check' => bin2hex( random_bytes( 16 ) ),
			'locks' => UpdateLocks::owner(),
			'site'  => $this->site->id(),
		];
		update_option( self::MARK, $this->mark, true );
		if ( ! UpdateLocks::take( $this->mark['locks'] ) ) {
			$this->end();
			throw self::busy();
		}
		try {
			return $change( $this->mark['check'] );
		} catch ( Throwable $thrown ) {
			// The process that changes the files may have died; recover() finishes or reverses its change. The mark stays,
			// so that a later request records that end. The file lock stays until the caller has recorded the failure.
			if ( null === $this->recover() ) {
				UpdateLocks::release( $this->mark['locks'] );
			}
			$this->mark = null;
			throw $thrown;
		}
	}

	/** Ends a change whose result is in the audit log: removes locks and mark. */
	public function end(): void {
		if ( null !== $this->mark ) {
			self::remove( $this->mark );
			$this->mark = null;
			$this->lock = null;
		}
	}

	/**
	 * Settles an interrupted change. Does nothing without a mark, or while the request that made it is alive. The
	 * mark is an autoloaded option, so reading it is cheap.
	 */
	public function settle(): void {
		if ( false === get_option( self::MARK ) ) {
			return;
		}
		try {
			// Held until this function returns.
			$lock = ChangeLock::take( $this->site->id() );
			$this->settle_marked();
		} catch ( Throwable $thrown ) {
			// Called only to write the server's log: every page of the site runs this.
			Failure::from( $thrown );
		}
	}

	/**
	 * Settles the marked change. The caller holds the file lock, so the request that made the change has ended.
	 *
	 * @return Failure|null Reason why the change is not settled; null if no marked change is left.
	 */
	private function settle_marked(): ?Failure {
		// Another request may have written or removed the mark since this one read its options.
		wp_cache_delete( 'alloptions', 'options' );
		wp_cache_delete( 'notoptions', 'options' );
		$mark = get_option( self::MARK );
		if ( ! is_array( $mark ) ) {
			return null;
		}
		$unsettled = $this->recover();
		if ( null !== $unsettled ) {
			$this->tell( $mark, $unsettled );
			return $unsettled;
		}
		$end = null;
		try {
			$end = ( new InterruptedChange( $this->site ) )->record( $mark );
		} catch ( Throwable $thrown ) {
			// Called only to write the server's log. The files are settled, so the locks are released. The mark stays, so
			// that a later request writes the audit record.
			Failure::from( $thrown );
			UpdateLocks::release( (string) $mark['locks'] );
			$mark['locks'] = '';
			update_option( self::MARK, $mark, true );
			return null;
		}
		self::remove( $mark );
		if ( null !== $end ) {
			/**
			 * Fires after the end of a change was recorded whose request had ended before.
			 *
			 * @param array<string, mixed> $mark Mark of the change: `about` and `user`.
			 * @param array<string, mixed> $end  Fields `status` and `result` of the audit record, or why the change cannot be settled.
			 */
			do_action( 'wp_codebox_interrupted_change', $mark, $end );
		}
		return null;
	}

	/**
	 * Tells once why a change cannot be settled.
	 *
	 * @param array<string, mixed> $mark      Mark of the change.
	 * @param Failure              $unsettled Reason.
	 */
	private function tell( array $mark, Failure $unsettled ): void {
		if ( ErrorCode::ApplyFailed->value === $unsettled->error_code && empty( $mark['told'] ) ) {
			$mark['told'] = true;
			update_option( self::MARK, $mark, true );
			// Documented in settle_marked().
			do_action(
				'wp_codebox_interrupted_change',
				$mark,
				[
					'status' => 'failure',
					'result' => [ 'message' => implode( ' ', [ $unsettled->getMessage(), ...$unsettled->hints ] ) ],
				]
			);
		}
	}

	/**
	 * Removes the locks of a change and then its mark.
	 *
	 * @param array<string, mixed> $mark Mark of the change.
	 */
	private static function remove( array $mark ): void {
		UpdateLocks::release( (string) $mark['locks'] );
		delete_option( self::MARK );
	}

	/** Returns the error for a site that another change or an update is changing. */
	private static function busy(): Failure {
		return Failure::because( ErrorCode::Busy, __( 'WordPress is being updated, or another change is being applied; wait until that has ended.', 'codebox' ) );
	}

	/**
	 * Lets the extension finish or reverse interrupted changes.
	 *
	 * @return Failure|null Null if no interrupted change is left; else that a process is still changing the site, or why
	 *                      a change could not be settled, which the next call tries again.
	 */
	private function recover(): ?Failure {
		try {
			$outcome = Changes::recover( $this->site->id() );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown );
		}
		OpcodeCache::drop( $outcome['paths'] );
		if ( $outcome['running'] ) {
			return self::busy();
		}
		if ( [] !== $outcome['failed'] ) {
			/* translators: %s: error message. */
			return Failure::because( ErrorCode::ApplyFailed, Sentence::of( __( 'An earlier change was interrupted, and it can be neither finished nor undone: %s', 'codebox' ), $outcome['failed'][0]['error']['message'] ), [ __( 'Remove this cause; the next request to apply or roll back a change tries again.', 'codebox' ) ] );
		}
		return null;
	}
}
