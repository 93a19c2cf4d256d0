<?php
/**
 * Command `wordpress.session`: logs a user in and stores the session in the guest.
 *
 * `user` names the user; with `role` a missing user is created. Later commands select the session by its
 * name; a browser gets it as the file `storageState`. Cookie values stay in the guest.
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
		$row += array( 'artifacts' => (object) Sessions::artifacts( $row['session'] ) );
		return delivered( $arguments, 'wordpress-session.json', array( 'schema' => 'wp-codebox/wordpress-session/v1' ) + $row );
	}
);
