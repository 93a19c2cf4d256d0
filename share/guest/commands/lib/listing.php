<?php
/**
 * Lists that are sorted, bounded and the same each time.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Rows in the order of some of their fields, as many as there may be.
 *
 * @param list<array<string,mixed>> $rows   Rows.
 * @param list<string>              $fields Fields that order them.
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
 * Texts, sorted and bounded.
 *
 * @param array<int|string,mixed> $texts Texts.
 * @param int                     $most  Texts at most.
 * @return list<string>
 */
function sorted_texts( array $texts, int $most = 1000 ): array {
	$texts = array_values( array_unique( array_map( static fn ( $text ): string => mb_scrub( (string) $text, 'UTF-8' ), $texts ) ) );
	sort( $texts, SORT_STRING );
	return array_slice( $texts, 0, $most );
}

/**
 * Callbacks of a hook, in the order they are called.
 *
 * @param string $hook Name of the hook.
 * @param int    $most Callbacks at most.
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
 * Names of the hooks that begin with something.
 *
 * @param string $prefix Beginning.
 * @return list<string>
 */
function hooks_with_prefix( string $prefix ): array {
	return sorted_texts( array_filter( array_keys( $GLOBALS['wp_filter'] ), static fn ( $hook ): bool => str_starts_with( (string) $hook, $prefix ) ) );
}
