<?php
/**
 * Scopes: rights that can be granted to an application password.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Contains only the contract's scopes that some ability checks. Unused scopes are not grantable: a stored
 * grant would take effect unexpectedly once an ability starts to check its scope.
 */
enum Scope: string {

	case RequestConnector     = 'browser-connector:request';
	case WriteArtifacts       = 'artifact:write';
	case CreateBrowserSession = 'browser-session:create';

	/** Returns the capability whose holders may use the scope without a grant. */
	public function capability(): string {
		return match ( $this ) {
			self::RequestConnector, self::CreateBrowserSession => Capabilities::RUN,
			self::WriteArtifacts => Capabilities::REVIEW,
		};
	}

	/**
	 * Returns all scopes as strings.
	 *
	 * @return list<string>
	 */
	public static function names(): array {
		return array_column( self::cases(), 'value' );
	}
}
