<?php
/**
 * Converts the public input of a fan-out to the fields of this plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\TaskInput;

defined( 'ABSPATH' ) || exit;

/** The rows of a fan-out name their goal `goal` or `task`, and may name their schema. */
final class Workers {

	/**
	 * Returns the input with `goal` in every row and without ids of schemas.
	 *
	 * @param array<string, mixed> $input Input of a fan-out that its schema accepts.
	 * @return array<string, mixed>
	 */
	public static function known( array $input ): array {
		unset( $input['schema'] );
		if ( is_array( $input['workers'] ?? null ) ) {
			$input['workers'] = array_map( [ self::class, 'row' ], $input['workers'] );
		}
		return $input;
	}

	/**
	 * Returns one row; a row that is no object stays for the extension to refuse.
	 *
	 * @param mixed $row Row.
	 */
	private static function row( mixed $row ): mixed {
		if ( ! is_array( $row ) || array_is_list( $row ) ) {
			return $row;
		}
		$goal = $row['goal'] ?? '';
		if ( is_string( $row['task'] ?? null ) ) {
			$row['goal'] = is_string( $goal ) && '' === trim( $goal ) ? $row['task'] : $goal;
			unset( $row['task'] );
		}
		if ( 'wp-codebox/agent-fanout-worker/v1' === ( $row['schema'] ?? null ) ) {
			unset( $row['schema'] );
		}
		return $row;
	}
}
