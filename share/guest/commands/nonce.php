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

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/nonces.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		if ( '' === $arguments->first( 'session' ) && '' !== $arguments->first( 'user', 'role' ) ) {
			$user = WPCodebox\Guest\Command\Users::ensure( $arguments->first( 'user' ), $arguments->first( 'role' ) );
			wp_set_current_user( $user->ID );
		} else {
			$user = WPCodebox\Guest\Command\Users::act( $arguments );
		}
		$holder = array( 'user' => WPCodebox\Guest\Command\Users::row( $user ) );
		if ( '' !== $arguments->first( 'session' ) ) {
			$holder['session'] = $arguments->first( 'session' );
		}
		$document = array( 'schema' => 'wp-codebox/wordpress-nonce/v1' )
			+ WPCodebox\Guest\Command\kept_nonce( $arguments->text( 'action', '-1' ), $holder );
		return WPCodebox\Guest\Command\delivered( $arguments, 'wordpress-nonce.json', $document );
	}
);
