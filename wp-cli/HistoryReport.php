<?php
/**
 * Describes state and history of a bundle for a terminal.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleHistory;

defined( 'ABSPATH' ) || exit;

/** Turns the answer of get-artifact into lines of at most 80 columns, apart from long names and messages. */
final class HistoryReport {

	/**
	 * Returns the lines: the state, then one or two lines for each entry of the history.
	 *
	 * @param array<string, mixed> $answer `wp-codebox/artifact/v1`.
	 * @return list<string>
	 */
	public static function lines( array $answer ): array {
		$lines = [ self::state( $answer ) ];
		foreach ( $answer['history'] as $row ) {
			$lines[] = sprintf( '  %s  %s', self::time( (string) $row['time'] ), self::event( $row ) );
			$details = implode( ' ', array_filter( [ (string) ( $row['adapter'] ?? '' ), (string) ( $row['reference'] ?? '' ), (string) ( $row['message'] ?? '' ) ] ) );
			if ( '' !== $details ) {
				$lines[] = '    ' . $details;
			}
		}
		if ( ! $answer['history_complete'] ) {
			$lines[] = '  Older records of the audit log were not searched.';
		}
		return $lines;
	}

	/**
	 * Describes the state.
	 *
	 * @param array<string, mixed> $answer `wp-codebox/artifact/v1`.
	 */
	private static function state( array $answer ): string {
		$state = (string) ( $answer['state'] ?? 'unknown' );
		if ( BundleHistory::APPLIED_IN_PART !== $state ) {
			return sprintf( 'State: %s.', $state );
		}
		return sprintf( 'State: %s (%d of %d files).', $state, count( $answer['applied_files'] ), count( ArtifactService::changed_files( $answer['artifact'] ) ) );
	}

	/**
	 * Describes one entry: what happened, to how many files, and by whom.
	 *
	 * @param array<string, mixed> $row Entry of the history.
	 */
	private static function event( array $row ): string {
		$files = count( $row['files'] ?? [] );
		$words = [ implode( ' ', array_filter( [ (string) $row['event'], (string) ( $row['action'] ?? '' ) ] ) ) . ': ' . $row['status'] ];
		if ( $files > 0 ) {
			$words[] = sprintf( 1 === $files ? '%d file' : '%d files', $files );
		}
		$words[] = 'by ' . self::who( $row );
		return implode( ', ', $words );
	}

	/**
	 * Describes the requester of an entry.
	 *
	 * @param array<string, mixed> $row Entry of the history.
	 */
	public static function who( array $row ): string {
		$kind = (string) $row['who']['kind'];
		return match ( $kind ) {
			'none'     => 'rollback' === $row['event'] ? 'the link sent by mail' : 'a caller who was not logged in',
			'recovery' => 'Codebox after an interruption',
			default    => (string) ( $row['who']['login'] ?? $kind ),
		};
	}

	/**
	 * Returns a time to the minute.
	 *
	 * @param string $time RFC 3339, UTC.
	 */
	private static function time( string $time ): string {
		$seconds = strtotime( $time );
		return false === $seconds ? $time : gmdate( 'Y-m-d H:i', $seconds );
	}
}
