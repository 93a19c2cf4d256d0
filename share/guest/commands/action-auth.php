<?php
/**
 * Command `wordpress.action-auth`: a session and a nonce of it, which together authorise one
 * action of the site. The nonce is in the file `artifacts.auth` of the guest, the cookies in
 * `storageState`; the result has neither value.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/nonces.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		$user = WPCodebox\Guest\Command\Users::ensure( $arguments->first( 'user' ), $arguments->first( 'role' ) );
		$row  = WPCodebox\Guest\Command\Sessions::of( $arguments, $user );
		$user = WPCodebox\Guest\Command\Sessions::become( $row['session'], '' );
		wp_set_current_user( $user->ID );
		$document = array( 'schema' => 'wp-codebox/wordpress-action-auth/v1' )
			+ WPCodebox\Guest\Command\kept_nonce( $arguments->text( 'action', '-1' ), $row );
		return WPCodebox\Guest\Command\delivered( $arguments, 'wordpress-action-auth.json', $document );
	}
);
