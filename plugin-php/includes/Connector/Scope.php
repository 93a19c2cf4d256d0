<?php
/**
 * What a trusted caller may be let do.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * The scopes of the contract that an ability asks for. Those that nothing asks for are no case here: a
 * grant of one would open nothing today, and something unforeseen the day it is used.
 */
enum Scope: string {

	case RequestConnector = 'browser-connector:request';

	/**
	 * All of them, as text.
	 *
	 * @return list<string>
	 */
	public static function names(): array {
		return array_column( self::cases(), 'value' );
	}
}
