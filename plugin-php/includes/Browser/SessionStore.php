<?php
/**
 * Stores the records of browser sessions.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * One transient per session. The record outlives its expiry by a day, and the end of a session leaves a mark, so that a
 * caller learns whether a session is unknown, expired, ended or another user's.
 */
final class SessionStore {

	/** How long an expired or ended session is still known, in seconds. */
	private const REMEMBERED = DAY_IN_SECONDS;

	/**
	 * Stores a record.
	 *
	 * @param SessionRecord $record Record.
	 * @throws Failure `wp_codebox_browser_session_foreign` when another user has a session with this id.
	 */
	public function keep( SessionRecord $record ): void {
		$known = $this->read( $record->session_id );
		if ( null !== $known && $known->expires_at > time() && ( $known->user_id !== $record->user_id || $known->blog_id !== $record->blog_id ) ) {
			throw $this->foreign();
		}
		set_transient( self::name( $record->session_id ), $record->to_array(), max( 1, $record->expires_at - time() ) + self::REMEMBERED );
	}

	/**
	 * Returns the record of a session of the current user on this site.
	 *
	 * @param string $session_id Id of the session.
	 * @throws Failure `wp_codebox_browser_session_unknown`, `_expired` or `_foreign`.
	 */
	public function get( string $session_id ): SessionRecord {
		$record = $this->read( $session_id );
		if ( null === $record ) {
			throw Failure::because( ErrorCode::BrowserSessionUnknown, __( 'This site has no browser session with this id; create one.', 'codebox' ) );
		}
		if ( $record->user_id !== get_current_user_id() || $record->blog_id !== get_current_blog_id() ) {
			throw $this->foreign();
		}
		if ( $record->expires_at <= time() ) {
			throw Failure::because( ErrorCode::BrowserSessionExpired, __( 'This browser session has expired; create a new one.', 'codebox' ) );
		}
		return $record;
	}

	/**
	 * Ends a session. Its references do not work any more.
	 *
	 * @param string $session_id Id of the session.
	 */
	public function forget( string $session_id ): void {
		delete_transient( self::name( $session_id ) );
		set_transient( self::name( $session_id, 'ended' ), get_current_user_id() . ':' . time(), self::REMEMBERED );
	}

	/**
	 * Returns whether a session was ended at or after a time.
	 *
	 * @param string $session_id Id of the session.
	 * @param int    $since      Time, in seconds since 1970.
	 */
	public function ended( string $session_id, int $since ): bool {
		$mark = get_transient( self::name( $session_id, 'ended' ) );
		return is_string( $mark ) && (int) substr( (string) strstr( $mark, ':' ), 1 ) >= $since && null === $this->read( $session_id );
	}

	/**
	 * Reads a record; null when there is none.
	 *
	 * @param string $session_id Id of the session.
	 */
	private function read( string $session_id ): ?SessionRecord {
		$record = SessionRecord::from( get_transient( self::name( $session_id ) ) );
		return null !== $record && hash_equals( $record->session_id, $session_id ) ? $record : null;
	}

	/** Builds the failure of a session that belongs to another user or site. */
	private function foreign(): Failure {
		return Failure::because( ErrorCode::BrowserSessionForeign, __( 'This browser session belongs to another user or site; create one of your own.', 'codebox' ) );
	}

	/**
	 * Returns the name of a transient.
	 *
	 * @param string $session_id Id of the session.
	 * @param string $kind       `record` or `ended`.
	 */
	private static function name( string $session_id, string $kind = 'record' ): string {
		return 'wp_codebox_browser_session_' . $kind . '_' . substr( hash( 'sha256', $session_id ), 0, 32 );
	}
}
