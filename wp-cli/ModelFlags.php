<?php
/**
 * Flags for the model, the tools and inherited connectors.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Converts flags to task fields. `--model` and other simple flags take plain values; a flag for a field that is an
 * object in the ability input, e.g. `--budget`, takes a JSON object.
 */
final class ModelFlags {

	private const OBJECTS = [ 'budget', 'sandbox-tool-policy', 'tool-bridge', 'parent-tool-bridge', 'inherit' ];

	/**
	 * Returns the task fields of the flags that were given.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function fields( array $flags ): array {
		$input = FlagList::texts( $flags, [ 'provider', 'model', 'base-url' ] );
		foreach ( self::OBJECTS as $flag ) {
			if ( isset( $flags[ $flag ] ) ) {
				$input[ str_replace( '-', '_', $flag ) ] = FlagList::json_object( '--' . $flag, (string) $flags[ $flag ] );
			}
		}
		if ( isset( $flags['max-turns'] ) ) {
			$input['max_turns'] = Quantity::whole( 'max-turns', (string) $flags['max-turns'], 1, PHP_INT_MAX );
		}
		if ( isset( $flags['max-cost'] ) ) {
			if ( 1 !== preg_match( '/^[0-9]{1,9}(\.[0-9]{1,6})?$/D', (string) $flags['max-cost'] ) ) {
				throw Failure::invalid_input( __( '--max-cost must be US dollars, e.g. 0.50.', 'codebox' ) );
			}
			$input['budget']['cost_usd'] = (float) $flags['max-cost'];
		}
		if ( isset( $flags['allowed-tools'] ) ) {
			$input['allowed_tools'] = FlagList::split( '--allowed-tools', (string) $flags['allowed-tools'] );
		}
		return $input;
	}
}
