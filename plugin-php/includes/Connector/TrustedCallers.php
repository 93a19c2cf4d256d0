<?php
/**
 * Callers that are trusted with one scope.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use WP_Application_Passwords;
use WPCodebox\Capabilities;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Who may run tasks may use every scope. Anybody else needs an application password that core has just
 * authenticated, that still belongs to the current user, and that the settings grant this very
 * scope. What a payload says of its caller decides nothing.
 */
final class TrustedCallers {

	/**
	 * Wires the callers.
	 *
	 * @param Settings     $settings     Settings in force.
	 * @param Capabilities $capabilities Permission.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Decides on the current request.
	 *
	 * @param Scope $scope   What is asked for.
	 * @param mixed $claimed `authorization` of the input.
	 */
	public function decide( Scope $scope, mixed $claimed = null ): Authorization {
		$user = get_current_user_id();
		// phpcs:ignore WordPress.WP.Capabilities -- mapped by Capabilities.
		if ( current_user_can( Capabilities::RUN ) ) {
			// Whom the site's filter narrows is not let in by another door.
			$allowed = $this->capabilities->allows( Capabilities::RUN );
			return new Authorization( $scope, $allowed, 'user:' . $user, 'capability', $allowed ? 'capability-held' : 'capability-narrowed', $claimed );
		}
		$uuid   = $this->authenticated( $user );
		$reason = null === $uuid ? 'missing-authorization' : $this->reason( $user, $uuid, $scope );
		return new Authorization( $scope, 'trusted-caller-grant' === $reason, $uuid ?? ( 0 === $user ? '' : 'user:' . $user ), 'trusted-orchestrator', $reason, $claimed );
	}

	/**
	 * The decision on a call that has come as far as the work: who was not let in by capability or
	 * grant is code of this site, which nobody asks.
	 *
	 * @param Scope $scope   What is done.
	 * @param mixed $claimed `authorization` of the input.
	 */
	public function admitted( Scope $scope, mixed $claimed = null ): Authorization {
		$decision = $this->decide( $scope, $claimed );
		return $decision->authorized ? $decision : new Authorization( $scope, true, $decision->caller, 'site-code', 'called-by-site-code', $claimed );
	}

	/**
	 * Id of the application password this request was authenticated with; null without one. The global
	 * behind core's function outlives a change of the current user, so ownership is looked up.
	 *
	 * @param int $user Current user; 0 for none.
	 */
	private function authenticated( int $user ): ?string {
		$uuid = 0 === $user ? null : rest_get_authenticated_app_password();
		if ( ! is_string( $uuid ) || '' === $uuid || ! wp_is_application_passwords_available_for_user( $user ) ) {
			return null;
		}
		return $uuid;
	}

	/**
	 * What is to be said of an application password.
	 *
	 * @param int    $user  Current user.
	 * @param string $uuid  Its id.
	 * @param Scope  $scope What is asked for.
	 */
	private function reason( int $user, string $uuid, Scope $scope ): string {
		$granted = $this->settings->trusted_callers()[ $uuid ] ?? null;
		if ( null === $granted || null === WP_Application_Passwords::get_user_application_password( $user, $uuid ) || ! is_user_member_of_blog( $user ) ) {
			return 'caller-not-trusted';
		}
		return in_array( $scope->value, $granted, true ) ? 'trusted-caller-grant' : 'missing-scope';
	}
}
