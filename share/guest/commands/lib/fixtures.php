<?php
/**
 * Names that a recipe gave to users and browsers of the guest's site.
 *
 * The supervisor's program `fixture-people.php` stores them before the first step. The file contains ids and names,
 * never a password or cookie.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Command;

/**
 * Finds users by the names of `inputs.fixtureUsers`, and sessions by those of `inputs.browserActors`.
 */
final class Fixtures {

	/** Guest file with the names: {users: {name: id}, actors: {name: session}}. */
	private const FILE = '/tmp/codebox-fixtures.json';

	/**
	 * Returns the id of a fixture user; null when the recipe has none of this name.
	 *
	 * @param string $name Name in `inputs.fixtureUsers`.
	 */
	public static function user( string $name ): ?int {
		$id = self::kept()['users'][ $name ] ?? null;
		return is_int( $id ) ? $id : null;
	}

	/**
	 * Returns the name of a browser actor's session; any other name is returned unchanged.
	 *
	 * @param string $name Name in `inputs.browserActors`, or of a session.
	 */
	public static function session( string $name ): string {
		$session = self::kept()['actors'][ $name ] ?? null;
		return is_string( $session ) ? $session : $name;
	}

	/**
	 * Stores names; those of the same kind replace the earlier ones.
	 *
	 * @param string                    $kind  Kind of the names: `users` or `actors`.
	 * @param array<string, int|string> $names Names with ids or sessions.
	 * @throws Refusal When the file cannot be written.
	 */
	public static function keep( string $kind, array $names ): void {
		$kept          = self::kept();
		$kept[ $kind ] = $names;
		if ( false === file_put_contents( root() . self::FILE, (string) json_encode( $kept ) ) ) {
			throw new Refusal( 'disk', 'the file with the users and sessions of the recipe cannot be written' );
		}
	}

	/**
	 * Returns the stored names.
	 *
	 * @return array<string, array<string, int|string>>
	 */
	private static function kept(): array {
		$file = root() . self::FILE;
		$kept = is_file( $file ) ? json_decode( (string) file_get_contents( $file ), true ) : null;
		return is_array( $kept ) ? $kept : array();
	}
}
