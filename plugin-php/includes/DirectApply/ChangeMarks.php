<?php
/**
 * Marks of changes whose end is not in the audit log.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

defined( 'ABSPATH' ) || exit;

/**
 * The option that holds the marks, oldest first. A mark is stored before a change of the site's files begins (an apply or
 * an undo), and removed when the audit log has the end of the change. So only the last one can be of a change in progress. A
 * request that writes the option holds the file lock of the site.
 */
final class ChangeMarks {

	/** Name of the option; also in the must-use plugin of RecoveryFile. It is autoloaded, because every request reads it. */
	public const OPTION = 'wp_codebox_unrecorded_changes';

	/**
	 * Returns the marks as this request has read them.
	 *
	 * @return list<array<string, mixed>>
	 */
	public static function all(): array {
		$marks = get_option( self::OPTION );
		return is_array( $marks ) ? $marks : [];
	}

	/**
	 * Reads the marks again, because another request may have written them since, and returns them.
	 *
	 * @return list<array<string, mixed>>
	 */
	public static function current(): array {
		wp_cache_delete( 'alloptions', 'options' );
		wp_cache_delete( 'notoptions', 'options' );
		return self::all();
	}

	/**
	 * Stores the marks.
	 *
	 * @param list<array<string, mixed>> $marks Marks, oldest first.
	 */
	public static function store( array $marks ): void {
		if ( [] === $marks ) {
			delete_option( self::OPTION );
		} else {
			update_option( self::OPTION, $marks, true );
		}
	}

	/** Returns why the last change could be neither finished nor undone; '' when it is settled or under way. */
	public static function unsettled(): string {
		$marks = self::all();
		return [] === $marks ? '' : (string) ( end( $marks )['told'] ?? '' );
	}

	/**
	 * Returns why the ends of settled changes could not be written into the audit log, one reason for each change.
	 *
	 * @return list<string>
	 */
	public static function unwritten(): array {
		return array_values( array_filter( array_column( self::all(), 'unwritten' ) ) );
	}

	/**
	 * Returns the records that are not in the audit log yet, oldest first.
	 *
	 * @return list<array<string, mixed>>
	 */
	public static function missing_records(): array {
		$marks = array_filter( self::all(), static fn( array $mark ): bool => isset( $mark['end'] ) );
		return array_values( array_map( static fn( array $mark ): array => InterruptedChange::fields( $mark, $mark['end'] ) + [ 'timestamp' => InterruptedChange::began( $mark ) ], $marks ) );
	}
}
