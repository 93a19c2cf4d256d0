<?php
/**
 * Command `wordpress.nonce`: makes a nonce for an action.
 *
 * It holds for the user, or for the session, which must be the one that sends it: WordPress
 * binds nonces to both. The value is in the file `artifacts.auth` of the guest, never in the
 * result.
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
		if ( '' === $arguments->first( 'session' ) && '' !== $arguments->first( 'user', 'role' ) ) {
			$user = Users::ensure( $arguments->first( 'user' ), $arguments->first( 'role' ) );
			wp_set_current_user( $user->ID );
		} else {
			$user = Users::act( $arguments );
		}
		$holder = array( 'user' => Users::row( $user ) );
		if ( '' !== $arguments->first( 'session' ) ) {
			$holder['session'] = $arguments->first( 'session' );
		}
		$document = array( 'schema' => 'wp-codebox/wordpress-nonce/v1' )
			+ kept_nonce( $arguments->text( 'action', '-1' ), $holder );
		return delivered( $arguments, 'wordpress-nonce.json', $document );
	}
);
