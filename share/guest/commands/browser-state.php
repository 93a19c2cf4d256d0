<?php
/**
 * Creates the initial storage state of a browser. Called by the runner; not a command of the registry.
 *
 * `storage-state` is the name of a session or of a browser actor, or the path of a guest file. Without it, the user `user-id` or the
 * first administrator is logged in. The document contains cookie values: the runner passes it to the browser
 * only.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$name = $arguments->first( 'storage-state' );
		if ( '' === $name ) {
			$id   = $arguments->first( 'user-id' );
			$user = '' === $id ? Users::administrator() : get_user_by( 'id', (int) $id );
			if ( ! $user ) {
				throw new Refusal( 'user-missing', sprintf( 'there is no user with the id %d', (int) $id ) );
			}
			// A name that a recipe or caller is unlikely to give to a session of its own.
			$name = '.codebox-browser';
			Sessions::make( $name, $user, array( home_url() ) );
		}
		if ( ! str_starts_with( $name, '/' ) ) {
			$name = Fixtures::session( $name );
			if ( 1 !== preg_match( '/^[A-Za-z0-9._-]{1,200}$/D', $name ) ) {
				throw new Refusal( 'session-invalid', 'storage-state is neither the name of a session nor a path nor JSON' );
			}
			$name = root() . Sessions::DIRECTORY . '/' . $name . '.storage-state.json';
		}
		$text  = is_file( $name ) && filesize( $name ) <= 1048576 ? (string) file_get_contents( $name ) : '';
		$state = json_decode( $text, true );
		if ( ! is_array( $state ) ) {
			throw new Refusal( 'session-missing', 'there is no such storage state; make it with wordpress.session' );
		}
		return array( 'state' => $state );
	}
);
