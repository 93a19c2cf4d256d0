<?php
/**
 * Decides which callers may use a scope.
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
 * Users with the capability of a scope may use it. Other callers need an application password that authenticated
 * the current request, belongs to the current user, and has this scope in the settings. The caller identity
 * claimed in the input is not used.
 */
final class TrustedCallers {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings     $settings     Effective settings.
	 * @param Capabilities $capabilities Permission checks of the user.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Decides whether the current request may use a scope.
	 *
	 * @param Scope $scope   Requested scope.
	 * @param mixed $claimed Field `authorization` of the input.
	 * @param mixed $input   Ability input.
	 */
	public function decide( Scope $scope, mixed $claimed = null, mixed $input = [] ): Authorization {
		$user  = get_current_user_id();
		$needs = $scope->capability();
		// phpcs:ignore WordPress.WP.Capabilities -- mapped by Capabilities.
		if ( current_user_can( $needs ) ) {
			// For a user with the capability this decision is final: application passwords are not tried, so that
			// they give no access to a user whom the site's filter denies.
			$allowed = $this->capabilities->allows( $needs );
			return new Authorization( $scope, $allowed, 'user:' . $user, 'capability', $allowed ? 'capability-held' : 'capability-narrowed', $claimed );
		}
		$uuid   = $this->authenticated( $user );
		$reason = null === $uuid ? 'missing-authorization' : $this->reason( $user, $uuid, $scope, $claimed, $input );
		return new Authorization( $scope, 'trusted-caller-grant' === $reason, $uuid ?? ( 0 === $user ? '' : 'user:' . $user ), 'trusted-orchestrator', $reason, $claimed );
	}

	/**
	 * Returns the decision for a call that already passed the permission check. A caller without capability
	 * and grant is PHP code of this site, which is not checked.
	 *
	 * @param Scope $scope   Scope of the operation.
	 * @param mixed $claimed Field `authorization` of the input.
	 * @param mixed $input   Ability input.
	 */
	public function admitted( Scope $scope, mixed $claimed = null, mixed $input = [] ): Authorization {
		$decision = $this->decide( $scope, $claimed, $input );
		return $decision->authorized ? $decision : new Authorization( $scope, true, $decision->caller, 'site-code', 'called-by-site-code', $claimed );
	}

	/**
	 * Returns the id of the application password that authenticated this request; null without one. WordPress keeps the
	 * id when the current user changes later, so `reason()` checks that the password belongs to the user.
	 *
	 * @param int $user Id of the current user; 0 for none.
	 */
	private function authenticated( int $user ): ?string {
		$uuid = 0 === $user ? null : rest_get_authenticated_app_password();
		if ( ! is_string( $uuid ) || '' === $uuid || ! wp_is_application_passwords_available_for_user( $user ) ) {
			return null;
		}
		return $uuid;
	}

	/**
	 * Returns `trusted-caller-grant` when the application password has the scope, else the reason for the refusal.
	 *
	 * @param int    $user    Id of the current user.
	 * @param string $uuid    Id of the application password.
	 * @param Scope  $scope   Requested scope.
	 * @param mixed  $claimed Field `authorization` of the input.
	 * @param mixed  $input   Ability input.
	 */
	private function reason( int $user, string $uuid, Scope $scope, mixed $claimed, mixed $input ): string {
		$granted = $this->settings->trusted_callers( $claimed, $input )[ $uuid ] ?? null;
		if ( null === $granted || null === WP_Application_Passwords::get_user_application_password( $user, $uuid ) || ! is_user_member_of_blog( $user ) ) {
			return 'caller-not-trusted';
		}
		return in_array( $scope->value, $granted, true ) ? 'trusted-caller-grant' : 'missing-scope';
	}
}
