<?php
/**
 * Validates which scopes (rights) the settings grant to which application password.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use WP_Application_Passwords;
use WP_User_Query;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Lists the application passwords of this installation and validates the scopes granted to each. Only names
 * and owners are read; WordPress stores a hash of the password itself, and this class does not read it.
 */
final class CallerGrants {

	private const UUID = '/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/D';

	/**
	 * Returns the grants in the form in which they are stored. The settings page posts a list of scopes per password.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array<string, list<string>>
	 * @throws Failure With an error message for the administrator.
	 */
	public function check( mixed $value ): array {
		if ( null !== $value && '' !== $value && ! is_array( $value ) ) {
			throw Failure::invalid_input( __( 'Trusted callers must be a map from the id of an application password to its scopes.', 'codebox' ) );
		}
		$grants = [];
		$known  = null;
		foreach ( is_array( $value ) ? $value : [] as $uuid => $scopes ) {
			$uuid  = strtolower( (string) $uuid );
			$asked = is_array( $scopes ) ? array_values( array_filter( $scopes, static fn( mixed $scope ): bool => '' !== $scope ) ) : [ $scopes ];
			if ( 1 !== preg_match( self::UUID, $uuid ) ) {
				throw Failure::invalid_input( __( 'A trusted caller is given by the id of an application password; do not paste a password or a name.', 'codebox' ) );
			}
			if ( [] !== array_filter( $asked, static fn( mixed $scope ): bool => ! in_array( $scope, Scope::names(), true ) ) ) {
				/* translators: %s: list of scopes. */
				throw Failure::invalid_input( Sentence::of( __( 'A scope of a trusted caller must be one of: %s.', 'codebox' ), implode( ', ', Scope::names() ) ) );
			}
			if ( [] === $asked ) {
				continue;
			}
			$known ??= array_column( $this->passwords( null ), null, 'uuid' );
			if ( ! isset( $known[ $uuid ] ) ) {
				/* translators: %s: id of an application password. */
				throw Failure::invalid_input( Sentence::of( __( 'There is no application password with the id %s; it may have been revoked.', 'codebox' ), $uuid ) );
			}
			$grants[ $uuid ] = array_values( array_intersect( Scope::names(), $asked ) );
		}
		return $grants;
	}

	/**
	 * Returns application passwords: all, or a limited number.
	 *
	 * @param int|null     $most   Maximum number of entries; null for all.
	 * @param list<string> $always Ids that are included in any case.
	 * @return list<array{uuid: string, name: string, user: string, used: string}>
	 */
	public function passwords( ?int $most, array $always = [] ): array {
		$query = new WP_User_Query(
			[
				'blog_id'      => 0,
				// phpcs:ignore WordPress.DB.SlowDBQuery -- the key is indexed; one query of a settings page.
				'meta_key'     => WP_Application_Passwords::USERMETA_KEY_APPLICATION_PASSWORDS,
				'meta_compare' => 'EXISTS',
				'orderby'      => 'login',
				'fields'       => [ 'ID', 'user_login' ],
				'count_total'  => false,
			]
		);
		$rows  = [];
		$wants = [];
		foreach ( $query->get_results() as $user ) {
			foreach ( WP_Application_Passwords::get_user_application_passwords( (int) $user->ID ) as $password ) {
				$row = [
					'uuid' => (string) $password['uuid'],
					'name' => (string) $password['name'],
					'user' => (string) $user->user_login,
					'used' => empty( $password['last_used'] ) ? '' : gmdate( 'Y-m-d', (int) $password['last_used'] ),
				];
				if ( in_array( $row['uuid'], $always, true ) ) {
					$wants[] = $row;
				} else {
					$rows[] = $row;
				}
			}
		}
		return array_merge( $wants, null === $most ? $rows : array_slice( $rows, 0, max( 0, $most - count( $wants ) ) ) );
	}
}
