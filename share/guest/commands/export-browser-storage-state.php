<?php
/**
 * Command `wordpress.export-browser-storage-state`: creates a storage state for browsers of this sandbox.
 *
 * `storage-state` is a storage state as JSON, `@` and the path of a guest file with one, or the name of the new
 * session; `user-json` is its user, `{user, role}`. Without a given state, or with a user, the state contains the
 * cookies of a login. Values stay in the guest: the result names only the file and the cookies.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/nonces.php';
require __DIR__ . '/lib/wordpress.php';

/** Members of `user-json` that name the user; the first one that is given counts. */
const NAMES = array( 'user', 'login', 'username', 'user_login', 'email', 'user_email', 'id', 'ID', 'user_id' );

finish(
	static function ( Arguments $arguments ): array {
		$given = given_state( $arguments->text( 'storage-state', '' ) );
		$who   = $arguments->record( 'user-json', array( ...NAMES, 'role' ) );
		$names = array_values( array_filter( array_intersect_key( array_replace( array_fill_keys( NAMES, '' ), $who ), array_flip( NAMES ) ), static fn ( mixed $name ): bool => '' !== (string) $name ) );
		if ( null === $given || array() !== $who ) {
			$held = $arguments->first( 'storage-state' );
			$user = null === $given && array() === $who && '' !== $held && Sessions::exists( $held )
				? Sessions::become( $held, '' )
				: Users::ensure( (string) ( $names[0] ?? '' ), (string) ( $who['role'] ?? '' ) );
			$row  = null === $given
				? Sessions::of( $arguments, $user, 'storage-state' )
				: Sessions::make( 'default', $user, array_values( array_unique( array( home_url(), ...$arguments->texts( 'browser-urls' ) ) ) ) );
		}
		if ( null !== $given ) {
			$row = Sessions::merge( 'default', $given, $row ?? array() );
		}
		$document = array(
			'schema'    => 'wp-codebox/browser-storage-state-export/v1',
			'command'   => 'wordpress.export-browser-storage-state',
			'status'    => 'ok',
			'artifacts' => array( 'storageState' => $row['storageState'] ),
		) + $row;
		return delivered( $arguments, 'browser-storage-state.json', $document );
	}
);

/**
 * Returns the storage state that the argument contains or names; null when it is the name of a session.
 *
 * @param string $text Value of the argument.
 * @return array{cookies: list<array<string,mixed>>, origins: list<array<string,mixed>>}|null
 * @throws Refusal When the state is not readable.
 */
function given_state( string $text ): ?array {
	if ( str_starts_with( $text, '@' ) ) {
		$path = substr( $text, 1 );
		$text = is_file( $path ) && filesize( $path ) <= 1048576 ? (string) file_get_contents( $path ) : '';
	} elseif ( ! str_starts_with( ltrim( $text ), '{' ) ) {
		return null;
	}
	$state = json_decode( $text, true );
	$lists = is_array( $state ) ? array( $state['cookies'] ?? array(), $state['origins'] ?? array() ) : array( null, null );
	foreach ( $lists as $list ) {
		if ( ! is_array( $list ) || ! array_is_list( $list ) || array_filter( $list, 'is_array' ) !== $list ) {
			throw Refusal::input( 'storage-state is not {cookies: [{name, value}], origins: [{origin, localStorage}]}' );
		}
	}
	foreach ( $lists[0] as $cookie ) {
		if ( ! is_string( $cookie['name'] ?? null ) || ! is_string( $cookie['value'] ?? null ) ) {
			throw Refusal::input( 'storage-state has a cookie without name and value' );
		}
	}
	return array(
		'cookies' => $lists[0],
		'origins' => $lists[1],
	);
}
