<?php
/**
 * Command `wordpress.session`: logs a user in and keeps the session in the guest.
 *
 * `user` names who; with `role` one who does not exist is made. Later commands take the session
 * by its name, a browser by the file `storageState`; values of cookies stay in the guest.
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
		return WPCodebox\Guest\Command\delivered( $arguments, 'wordpress-session.json', array( 'schema' => 'wp-codebox/wordpress-session/v1' ) + $row );
	}
);
