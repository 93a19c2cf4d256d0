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

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/nonces.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$user = Users::ensure( $arguments->first( 'user' ), $arguments->first( 'role' ) );
		$row  = Sessions::of( $arguments, $user );
		return delivered( $arguments, 'wordpress-session.json', array( 'schema' => 'wp-codebox/wordpress-session/v1' ) + $row );
	}
);
