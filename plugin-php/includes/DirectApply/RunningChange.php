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
 * lets the extension finish or reverse the change, records how it ended, and removes locks and mark. A mark whose record
 * cannot be written stays for a later request.
 */
final class RunningChange {

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
		ChangeMarks::store( [ ...ChangeMarks::all(), $this->mark ] );
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
		$this->finish();
	}

	/**
	 * Ends a change whose result could not be written into the audit log: removes the locks. A later request writes the
	 * record.
	 *
	 * @param array<string, mixed> $requester Requester of the change.
	 * @param array<string, mixed> $end       Fields `status` and `result` of the record.
	 */
	public function end_unrecorded( array $requester, array $end ): void {
		if ( null !== $this->mark ) {
			$this->finish( self::unrecorded( [ 'requester' => $requester ] + $this->mark, $end, '' ) );
		}
	}

	/**
	 * Settles an interrupted change. Does nothing without a mark, or while the request that made it is alive. The
	 * mark is an autoloaded option, so reading it is cheap.
	 */
	public function settle(): void {
		if ( false === get_option( ChangeMarks::OPTION ) ) {
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
	 * Settles the marked changes. The caller holds the file lock, so the requests that made the changes have ended.
	 *
	 * @return Failure|null Reason why a change is not settled; null if no marked change is left, or only the audit log
	 *                      cannot be written.
	 */
	private function settle_marked(): ?Failure {
		$marks = ChangeMarks::current();
		if ( [] === $marks ) {
			return null;
		}
		$unsettled = $this->recover();
		if ( null !== $unsettled ) {
			$this->tell( $marks, $unsettled );
			return $unsettled;
		}
		$change   = new InterruptedChange( $this->site );
		$recorded = [];
		$left     = [];
		foreach ( $marks as $mark ) {
			$end = null;
			try {
				$end = $change->outcome( $mark );
				if ( null !== $end ) {
					$change->record( $mark, $end );
					$recorded[] = [ $mark, $end ];
				}
			} catch ( Throwable $thrown ) {
				// The files are settled, so the locks are released. The mark stays, so that a later request writes the record.
				$left[] = self::unrecorded( $mark, $end, Failure::from( $thrown )->getMessage() );
			}
			UpdateLocks::release( (string) $mark['locks'] );
		}
		ChangeMarks::store( $left );
		foreach ( $recorded as [ $mark, $end ] ) {
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
	 * Tells once why the last change cannot be settled.
	 *
	 * @param non-empty-list<array<string, mixed>> $marks     Marks.
	 * @param Failure                              $unsettled Reason.
	 */
	private function tell( array $marks, Failure $unsettled ): void {
		$mark = array_pop( $marks );
		if ( ErrorCode::ApplyFailed->value === $unsettled->error_code && empty( $mark['told'] ) ) {
			$mark['told'] = implode( ' ', [ $unsettled->getMessage(), ...$unsettled->hints ] );
			ChangeMarks::store( [ ...$marks, $mark ] );
			// Documented in settle_marked().
			do_action(
				'wp_codebox_interrupted_change',
				$mark,
				[
					'status' => 'failure',
					'result' => [ 'message' => $mark['told'] ],
				]
			);
		}
	}

	/**
	 * Removes the locks of the change of this request, and then its mark.
	 *
	 * @param array<string, mixed>|null $unrecorded Mark that replaces it; null for none.
	 */
	private function finish( ?array $unrecorded = null ): void {
		if ( null === $this->mark ) {
			return;
		}
		UpdateLocks::release( $this->mark['locks'] );
		$others = array_filter( ChangeMarks::all(), fn( array $mark ): bool => $mark !== $this->mark );
		ChangeMarks::store( array_values( array_filter( [ ...$others, $unrecorded ] ) ) );
		$this->mark = null;
		$this->lock = null;
	}

	/**
	 * Returns the mark of a settled change without its record.
	 *
	 * @param array<string, mixed>      $mark   Mark of the change.
	 * @param array<string, mixed>|null $end    Fields `status` and `result` of the record; null if they are unknown.
	 * @param string                    $reason Why the record could not be written; '' if only this request knows.
	 * @return array<string, mixed>
	 */
	private static function unrecorded( array $mark, ?array $end, string $reason ): array {
		$replaced = [
			'locks'     => '',
			'check'     => '',
			'unwritten' => $reason,
		];
		return array_replace( array_diff_key( $mark, [ 'told' => 1 ] ), $replaced, null === $end ? [] : [ 'end' => $end ] );
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
