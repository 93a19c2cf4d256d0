<?php
/**
 * Providers that plugins of this site register with a filter.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\HostPlugin;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** A provider is a row with `id`, `callback`, and `target_ids` or `matches`. An invalid row fails the call, because it may be the one that was meant. */
final class HostProviders {

	/**
	 * Returns the first provider that takes a request; null when there is none.
	 *
	 * @param mixed                $rows    Value that the filter returned.
	 * @param array<string, mixed> $request Request.
	 * @param string               $target  Id of the target; '' when requests have none.
	 * @param ErrorCode            $invalid Error code of an invalid row.
	 * @return array{id: string, callback: callable}|null
	 * @throws Failure With the error code.
	 */
	public static function first( mixed $rows, array $request, string $target, ErrorCode $invalid ): ?array {
		if ( ! is_array( $rows ) ) {
			throw Failure::because( $invalid, __( 'The filter with which plugins register runtimes (wp_codebox_runtime_task_providers) or workload runners (wp_codebox_wordpress_workload_runners) did not return an array.', 'codebox' ) );
		}
		foreach ( $rows as $key => $row ) {
			$row = is_array( $row ) ? $row + ( is_string( $key ) ? [ 'id' => $key ] : [] ) : [];
			if ( ! is_string( $row['id'] ?? null ) || '' === trim( $row['id'] ) || ! is_callable( $row['callback'] ?? null ) ) {
				/* translators: %s: position or name of a row. */
				throw Failure::because( $invalid, Sentence::of( __( 'The runtime or workload runner "%s" that a plugin registers has no "id", or its "callback" cannot be called.', 'codebox' ), sanitize_text_field( (string) $key ) ) );
			}
			if ( self::takes( $row, $request, $target, $invalid ) ) {
				return $row;
			}
		}
		return null;
	}

	/**
	 * Checks whether a provider takes a request.
	 *
	 * @param array<string, mixed> $row     Provider.
	 * @param array<string, mixed> $request Request.
	 * @param string               $target  Id of the target; '' when requests have none.
	 * @param ErrorCode            $invalid Error code when its callback `matches` throws.
	 */
	private static function takes( array $row, array $request, string $target, ErrorCode $invalid ): bool {
		if ( is_callable( $row['matches'] ?? null ) ) {
			$message = __( 'The function "matches" of a runtime or workload runner that a plugin registers threw an exception; the PHP error log says where.', 'codebox' );
			return true === HostAnswer::of( static fn(): mixed => $row['matches']( $request ), $invalid, $message );
		}
		if ( '' === $target ) {
			return true;
		}
		return in_array( $target, (array) ( $row['target_ids'] ?? [ $row['id'] ] ), true );
	}
}
