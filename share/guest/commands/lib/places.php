<?php
/**
 * Files and directories of the guest that arguments name.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * A directory of the guest.
 *
 * @param string $name Name of the argument.
 * @param string $path Path: absolute in the guest, or relative to the base.
 * @param string $base Directory that a relative path begins at, as PHP sees it.
 */
function directory_at( string $name, string $path, string $base = '' ): string {
	$place = place_at( $path, $base );
	if ( null === $place || ! is_dir( $place ) ) {
		throw Refusal::input( sprintf( '%s is %s, which is no directory of this guest', $name, Arguments::shown( $path ) ) );
	}
	return $place;
}

/**
 * A file of the guest.
 *
 * @param string $name Name of the argument.
 * @param string $path Path: absolute in the guest, or relative to the base.
 * @param string $base Directory that a relative path begins at, as PHP sees it.
 */
function file_at( string $name, string $path, string $base = '' ): string {
	$place = place_at( $path, $base );
	if ( null === $place || ! is_file( $place ) || ! is_readable( $place ) ) {
		throw Refusal::input( sprintf( '%s is %s, which is no file of this guest%s', $name, Arguments::shown( $path ), '' === $base || str_starts_with( $path, '/' ) ? '' : ' below ' . guest_path( $base ) ) );
	}
	return $place;
}

/**
 * A place as PHP sees it.
 *
 * @param string $path Path.
 * @param string $base Directory that a relative path begins at.
 */
function place_at( string $path, string $base ): ?string {
	if ( '' === $path || str_contains( $path, "\0" ) || in_array( '..', explode( '/', $path ), true ) ) {
		return null;
	}
	return str_starts_with( $path, '/' ) ? root() . rtrim( $path, '/' ) : ( '' === $base ? null : "$base/$path" );
}

/**
 * Refuses what wants a network of sites where there is none.
 *
 * @param Arguments $arguments Arguments of the guest command.
 */
function network_as_asked( Arguments $arguments ): void {
	// The constants of a network: make-network.php leaves them there.
	if ( $arguments->truth( 'multisite', false ) && ! is_file( root() . '/wordpress/wp-content/codebox-network.php' ) ) {
		throw Refusal::unsupported( 'multisite: this guest holds a single site; make it a network first, with enableMultisite in a blueprint or a site seed, or leave the argument out' );
	}
}
