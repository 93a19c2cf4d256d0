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
 * The scopes of the contract. Each stands alone: a grant of one never implies another.
 */
enum Scope: string {

	case CreateSession    = 'browser-session:create';
	case RequestConnector = 'browser-connector:request';
	case WriteArtifact    = 'artifact:write';

	/**
	 * What can be granted: scopes that something asks for. A grant of any other would open nothing
	 * today, and something unforeseen the day it is used.
	 *
	 * @return list<string>
	 */
	public static function grantable(): array {
		return [ self::RequestConnector->value ];
	}

	/**
	 * All of them, as text.
	 *
	 * @return list<string>
	 */
	public static function names(): array {
		return array_column( self::cases(), 'value' );
	}
}
