<?php
/**
 * Caller of a browser session as this site authenticated it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Connector\Scope;
use WPCodebox\Connector\TrustedCallers;

defined( 'ABSPATH' ) || exit;

/** User and caller id. The id never comes from the input: it is the login of the user, or the application password that authenticated the request. */
final class Owner {

	/**
	 * Creates an owner.
	 *
	 * @param int                  $user_id       User; 0 for code of this site without a user.
	 * @param string               $caller_id     Id of the caller.
	 * @param array<string, mixed> $authorization Decision, `wp-codebox/trusted-orchestrator-authorization/v1`.
	 */
	private function __construct(
		public readonly int $user_id,
		public readonly string $caller_id,
		public readonly array $authorization
	) {}

	/**
	 * Returns the owner of what the current request makes.
	 *
	 * @param TrustedCallers       $callers Authorizes the caller.
	 * @param array<string, mixed> $input   Ability input.
	 */
	public static function current( TrustedCallers $callers, array $input ): self {
		$decision = $callers->admitted( Scope::CreateBrowserSession, $input['authorization'] ?? null, $input );
		$user     = wp_get_current_user();
		$id       = match ( true ) {
			'trusted-orchestrator' === $decision->method => 'application-password:' . $decision->caller,
			$user->ID > 0                                => $user->user_login,
			default                                      => 'site-code',
		};
		return new self( $user->ID, $id, $decision->to_array() );
	}
}
