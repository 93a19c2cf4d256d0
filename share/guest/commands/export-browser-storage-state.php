<?php
/**
 * Command `wordpress.export-browser-storage-state`: a storage state for browsers of this sandbox.
 *
 * `storage-state` is the name the session gets; `user-json` says who, `{user, role}`. The values
 * of its cookies stay in the guest: the document names the file and the cookies.
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
		$who  = $arguments->record( 'user-json', array( 'user', 'role' ) );
		$user = WPCodebox\Guest\Command\Users::ensure( (string) ( $who['user'] ?? '' ), (string) ( $who['role'] ?? '' ) );
		$row  = WPCodebox\Guest\Command\Sessions::of( $arguments, $user, 'storage-state' );
		return WPCodebox\Guest\Command\delivered( $arguments, 'browser-storage-state.json', array( 'schema' => 'wp-codebox/browser-storage-state-export/v1' ) + $row );
	}
);
