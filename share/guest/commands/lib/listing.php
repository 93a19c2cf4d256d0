<?php
/**
 * Lists of a result in a fixed order and with a size limit.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Sorts rows by some of their fields and limits their number.
 *
 * @param list<array<string,mixed>> $rows   Rows to sort.
 * @param list<string>              $fields Fields to sort by.
 * @param int                       $most   Maximum number of rows.
 * @return array{items: list<array<string,mixed>>, total: int, truncated: bool}
 */
function listing( array $rows, array $fields, int $most = 1000 ): array {
	$key = static fn ( array $row ): array => array_map( static fn ( string $field ): string => (string) ( $row[ $field ] ?? '' ), $fields );
	usort( $rows, static fn ( array $a, array $b ): int => $key( $a ) <=> $key( $b ) );
	return array(
		'items'     => array_slice( $rows, 0, $most ),
		'total'     => count( $rows ),
		'truncated' => count( $rows ) > $most,
	);
}

/**
 * Sorts strings and limits their number.
 *
 * @param array<int|string,mixed> $texts Strings to sort.
 * @param int                     $most  Maximum number of strings.
 * @return list<string>
 */
function sorted_texts( array $texts, int $most = 1000 ): array {
	$texts = array_values( array_unique( array_map( static fn ( $text ): string => mb_scrub( (string) $text, 'UTF-8' ), $texts ) ) );
	sort( $texts, SORT_STRING );
	return array_slice( $texts, 0, $most );
}

/**
 * Returns callbacks of a hook in their order.
 *
 * @param string $hook Name of the hook.
 * @param int    $most Maximum number of callbacks.
 * @return list<array{priority: int, callback: string}>
 */
function hook_callbacks( string $hook, int $most = 50 ): array {
	$list = array();
	foreach ( ( $GLOBALS['wp_filter'][ $hook ] ?? null )?->callbacks ?? array() as $priority => $callbacks ) {
		foreach ( $callbacks as $row ) {
			if ( count( $list ) < $most ) {
				$list[] = array(
					'priority' => (int) $priority,
					'callback' => callback_name( $row['function'] ),
				);
			}
		}
	}
	return $list;
}

/**
 * Returns names of hooks with a prefix.
 *
 * @param string $prefix Prefix of the names.
 * @return list<string>
 */
function hooks_with_prefix( string $prefix ): array {
	return sorted_texts( array_filter( array_keys( $GLOBALS['wp_filter'] ), static fn ( $hook ): bool => str_starts_with( (string) $hook, $prefix ) ) );
}
