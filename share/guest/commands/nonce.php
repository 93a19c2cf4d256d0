<?php
/**
 * Command `wordpress.nonce`: creates a nonce for an action of the site.
 *
 * WordPress binds a nonce to user and session, so the session that sends it must be the given one. The nonce
 * value is in the guest file `artifacts.auth`, never in the result.
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
