<?php
/**
 * Units of quantities in settings.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Options store milliseconds, seconds, bytes and millionths of a US dollar under the extension's field names. The settings
 * page shows seconds, days, MiB and US dollars under its own field names; input may use either form.
 */
final class SettingUnits {

	/** By field of the page: the stored field, and the number of stored units in one unit of the page. */
	public const UNITS = [
		'wall_clock_seconds' => [ 'wall_clock_ms', 1000 ],
		'processes'          => [ 'processes', 1 ],
		'memory_mib'         => [ 'memory_bytes', 1048576 ],
		'disk_mib'           => [ 'disk_bytes', 1048576 ],
		'output_mib'         => [ 'output_bytes', 1048576 ],
		'max_age_days'       => [ 'max_age_seconds', 86400 ],
		'max_mib'            => [ 'max_bytes', 1048576 ],
		'site_usd'           => [ 'site_microusd', 1000000 ],
		'requester_usd'      => [ 'requester_microusd', 1000000 ],
		'artifacts_max_days' => [ 'artifacts_max_age_seconds', 86400 ],
	];

	/**
	 * Reads quantities under stored or page field names; empty fields are omitted. A rounded value that the
	 * page posts back unchanged keeps the stored value.
	 *
	 * @param mixed              $value   Value as the caller gave it.
	 * @param list<string>       $fields  Stored field names.
	 * @param array<string, int> $current Currently stored quantities.
	 * @return array<string, int>
	 */
	public static function stored( mixed $value, array $fields, array $current ): array {
		$numbers = [];
		if ( null !== $value && ! is_array( $value ) ) {
			throw Failure::invalid_input( __( 'This setting must be an array; in JSON, an array or an object.', 'codebox' ) );
		}
		foreach ( $value ?? [] as $name => $given ) {
			[ $field, $factor ] = in_array( $name, $fields, true ) ? [ $name, 1 ] : ( self::UNITS[ $name ] ?? [ '', 1 ] );
			if ( ! in_array( $field, $fields, true ) ) {
				/* translators: %s: name as given. */
				throw Failure::invalid_input( sprintf( __( 'There is no setting "%s" here.', 'codebox' ), sanitize_key( (string) $name ) ) );
			}
			if ( null === $given || '' === $given || 0 === $given || '0' === $given ) {
				continue;
			}
			$number = self::whole( $given, intdiv( PHP_INT_MAX, $factor ) );
			if ( null === $number ) {
				/* translators: %s: name of a setting. */
				throw Failure::invalid_input( sprintf( __( '%s must be a positive whole number; leave the field empty to set no value.', 'codebox' ), $name ) );
			}
			$old               = $current[ $field ] ?? 0;
			$numbers[ $field ] = 0 !== $old && self::shown( $old, $factor ) === $number ? $old : $number * $factor;
		}
		return $numbers;
	}

	/**
	 * Converts a stored value to the unit shown on the page.
	 *
	 * @param int $value  Stored value.
	 * @param int $factor Number of stored units in one displayed unit.
	 */
	public static function shown( int $value, int $factor ): int {
		return max( 1, intdiv( $value, $factor ) );
	}

	/**
	 * Parses a non-negative integer from a number or digits; returns null when invalid.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @param int   $max   Largest accepted value.
	 */
	public static function whole( mixed $value, int $max ): ?int {
		$text   = is_int( $value ) || is_string( $value ) ? trim( (string) $value ) : '';
		$number = 1 === preg_match( '/^[0-9]{1,18}$/D', $text ) ? (int) $text : -1;
		return $number >= 0 && $number <= $max ? $number : null;
	}
}
