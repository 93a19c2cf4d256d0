<?php
/**
 * Creates a user of the guest's site, with a given id if one is asked for.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Creates a user, or changes the one with the same login.
 *
 * @param array<string, mixed> $fields Fields of wp_insert_user(): user_login, user_email, display_name, role,
 *                                     user_pass ('' means a random password that is not stored).
 * @param int|null             $id     Id that the user must have; null accepts any.
 * @return int|\WP_Error Id of the user.
 */
function make_user( array $fields, ?int $id ) {
	global $wpdb;
	$login = (string) $fields['user_login'];
	if ( '' === $login || sanitize_user( $login, true ) !== $login ) {
		return new \WP_Error( 'login', "$login is not a login name" );
	}
	if ( null === get_role( (string) $fields['role'] ) ) {
		return new \WP_Error( 'role', "there is no role {$fields['role']}; roles are " . implode( ', ', array_keys( wp_roles()->roles ) ) );
	}
	$same = get_user_by( 'login', $login );
	$held = null === $id ? false : get_user_by( 'id', $id );
	if ( $held && $held->user_login !== $login ) {
		return new \WP_Error( 'id', "the id $id belongs to the user {$held->user_login}" );
	}
	if ( $same && null !== $id && $same->ID !== $id ) {
		return new \WP_Error( 'id', "the user $login has the id {$same->ID}, not $id" );
	}
	// These mails have no reader, and a recipe that checks the number of sent mails would count them.
	add_filter( 'send_password_change_email', '__return_false' );
	add_filter( 'send_email_change_email', '__return_false' );
	if ( ! $same && null !== $id ) {
		// WordPress's functions do not create a user with a given id.
		$row = array(
			'ID'              => $id,
			'user_login'      => $login,
			'user_nicename'   => substr( sanitize_title( $login ), 0, 50 ),
			'user_registered' => gmdate( 'Y-m-d H:i:s' ),
		);
		if ( ! $wpdb->insert( $wpdb->users, $row ) ) {
			return new \WP_Error( 'id', "a user with the id $id cannot be created" );
		}
		clean_user_cache( $id );
		$same = get_user_by( 'id', $id );
	}
	if ( '' === ( $fields['user_pass'] ?? '' ) ) {
		unset( $fields['user_pass'] );
		if ( ! $same || '' === $same->user_pass ) {
			$fields['user_pass'] = bin2hex( random_bytes( 24 ) );
		}
	}
	$fields = wp_slash( $fields );
	return $same ? wp_update_user( array( 'ID' => $same->ID ) + $fields ) : wp_insert_user( $fields );
}
