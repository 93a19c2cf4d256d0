<?php
/**
 * Guest files and directories given as arguments.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Returns the file system path of a guest directory; fails when it does not exist.
 *
 * @param string $name Name of the argument.
 * @param string $path Path: absolute in the guest, or relative to the base.
 * @param string $base Base directory on the file system.
 */
function directory_at( string $name, string $path, string $base = '' ): string {
	$place = place_at( $path, $base );
	if ( null === $place || ! is_dir( $place ) ) {
		throw Refusal::input( sprintf( '%s is %s, which is not a directory in this guest', $name, Arguments::shown( $path ) ) );
	}
	return $place;
}

/**
 * Returns the file system path of a guest file; fails when it does not exist.
 *
 * @param string $name Name of the argument.
 * @param string $path Path: absolute in the guest, or relative to the base.
 * @param string $base Base directory on the file system.
 */
function file_at( string $name, string $path, string $base = '' ): string {
	$place = place_at( $path, $base );
	if ( null === $place || ! is_file( $place ) || ! is_readable( $place ) ) {
		throw Refusal::input( sprintf( '%s is %s, which is not a file in this guest%s', $name, Arguments::shown( $path ), '' === $base || str_starts_with( $path, '/' ) ? '' : ' below ' . guest_path( $base ) ) );
	}
	return $place;
}

/**
 * Converts a guest path to a path on the file system.
 *
 * @param string $path Guest path.
 * @param string $base Base directory of a relative path.
 */
function place_at( string $path, string $base ): ?string {
	if ( '' === $path || str_contains( $path, "\0" ) || in_array( '..', explode( '/', $path ), true ) ) {
		return null;
	}
	return str_starts_with( $path, '/' ) ? root() . rtrim( $path, '/' ) : ( '' === $base ? null : "$base/$path" );
}
