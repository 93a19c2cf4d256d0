<?php
/**
 * Command `wordpress.action-auth`: creates a session and one of its nonces, which together authorize one
 * action of the site. The nonce is in the guest file `artifacts.auth`, the cookies are in `storageState`; the
 * result contains neither value.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/nonces.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$user = Users::for_session( $arguments );
		$row  = Sessions::of( $arguments, $user );
		$user = Sessions::become( $row['session'], '' );
		wp_set_current_user( $user->ID );
		$document = array( 'schema' => 'wp-codebox/wordpress-action-auth/v1' )
			+ kept_nonce( $arguments->text( 'action', '-1' ), $row );
		return delivered( $arguments, 'wordpress-action-auth.json', $document );
	}
);
