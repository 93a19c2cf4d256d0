<?php
/**
 * Command `wordpress.export-browser-storage-state`: creates a storage state for browsers of this sandbox.
 *
 * `storage-state` is the name of the new session; `user-json` is its user, `{user, role}`. Cookie values stay
 * in the guest: the result names only the file and the cookies.
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
		$who  = $arguments->record( 'user-json', array( 'user', 'role' ) );
		$user = Users::ensure( (string) ( $who['user'] ?? '' ), (string) ( $who['role'] ?? '' ) );
		$row  = Sessions::of( $arguments, $user, 'storage-state' );
		return delivered( $arguments, 'browser-storage-state.json', array( 'schema' => 'wp-codebox/browser-storage-state-export/v1' ) + $row );
	}
);
