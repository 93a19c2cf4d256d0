<?php
/**
 * The acting user of a command, given as a JSON object.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';

/** Members of a principal that name the user. */
const PRINCIPAL_USERS = array( 'user', 'login', 'user_login', 'username', 'email', 'user_email', 'id', 'user_id', 'userId' );

/** Members of a principal that name the user's role. */
const PRINCIPAL_ROLES = array( 'role', 'roles' );

/**
 * Sets the current user: the one of a principal, else the one of `user` or `session`, else the default.
 *
 * `principal` is the login, e-mail address or id of a user, or an object like `principal-json`: {user} or
 * {role}. A missing user is created with the role.
 *
 * @param Arguments $arguments Guest command arguments principal, principal-json, user, session.
 * @param \WP_User  $otherwise Default user.
 */
function act_as_principal( Arguments $arguments, \WP_User $otherwise ): \WP_User {
	$given = array();
	foreach ( array( 'principal-json', 'principal' ) as $name ) {
		if ( str_starts_with( $arguments->first( $name ), '{' ) ) {
			$given[ $name ] = $arguments->record( $name, array( ...PRINCIPAL_USERS, ...PRINCIPAL_ROLES ) );
		}
	}
	if ( 2 === count( $given ) && $given['principal'] != $given['principal-json'] ) {
		throw Refusal::input( 'principal and principal-json are different objects; give one of them' );
	}
	$who = reset( $given );
	if ( false === $who || array() === $who ) {
		return Users::act( $arguments, $otherwise ) ?? $otherwise;
	}
	$user  = principal_member( $who, PRINCIPAL_USERS );
	$role  = principal_member( $who, PRINCIPAL_ROLES );
	$found = '' === $user && '' === $role ? $otherwise : Users::ensure( $user, $role );
	wp_set_current_user( $found->ID );
	return $found;
}

/**
 * Returns the first member of a principal with one of several names, as a text; '' when it has none.
 *
 * @param array<string,mixed> $who   Principal.
 * @param list<string>        $names Names of the member.
 */
function principal_member( array $who, array $names ): string {
	foreach ( $names as $name ) {
		$value = $who[ $name ] ?? null;
		$value = is_array( $value ) && 1 === count( $value ) ? reset( $value ) : $value;
		if ( is_array( $value ) ) {
			throw Refusal::input( "the principal has several values of $name; give one" );
		}
		if ( null !== $value && '' !== (string) $value ) {
			return (string) $value;
		}
	}
	return '';
}
