<?php
/**
 * Who may use the site's credentials.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Whoever may run a task may use them, unless the site says otherwise.
 */
final class CredentialPermission {

	/**
	 * Whether whoever asks may use a credential.
	 *
	 * @param string               $kind  `connector` or `provider`.
	 * @param string               $name  Id of the connector or provider.
	 * @param array<string, mixed> $input Input of the ability.
	 */
	public static function granted( string $kind, string $name, array $input ): bool {
		/**
		 * Filters whether a caller may use a credential of this site. It can only narrow: the
		 * permission of the ability was checked before, and anything but `true` denies.
		 *
		 * @param bool                 $allowed Always true.
		 * @param string               $kind    `connector` or `provider`.
		 * @param string               $name    Id of the connector or provider.
		 * @param int                  $user_id Who asks; 0 for the operator.
		 * @param array<string, mixed> $input   Input of the ability.
		 */
		return true === apply_filters( 'wp_codebox_can_use_credentials', true, $kind, $name, get_current_user_id(), $input );
	}
}
