<?php
/**
 * Files that a command writes for its caller, in the directory of the argument `output-dir`.
 *
 * A relative directory is one in the run's bundle, below the files of this command. An absolute one is a
 * directory of the guest; a copy of each file is written there.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Writes one file for the bundle, and into the guest directory that the caller names, if any; returns the
 * guest path of the file in the named directory.
 *
 * @param Arguments $arguments Guest command arguments with `output-dir`.
 * @param string    $path      Path of the file below the directory.
 * @param string    $bytes     Content of the file.
 * @param string    $kind      Kind of the file, one word.
 */
function write_output( Arguments $arguments, string $path, string $bytes, string $kind ): string {
	$directory = $arguments->first( 'output-dir' );
	$absolute  = str_starts_with( $directory, '/' );
	$below     = array( ...( $absolute ? array() : path_segments( $directory ) ), ...path_segments( dirname( $path ) ) );
	$file      = write_artifact( basename( $path ), $bytes, $kind, 'application/json', implode( '/', $below ) );
	if ( ! $absolute ) {
		return $file;
	}
	if ( in_array( '..', explode( '/', $directory ), true ) ) {
		throw Refusal::input( sprintf( 'output-dir is %s, but must not contain ..', Arguments::shown( $directory ) ) );
	}
	$copy = rtrim( $directory, '/' ) . '/' . $path;
	if ( ! is_dir( root() . dirname( $copy ) ) ) {
		@mkdir( root() . dirname( $copy ), 0755, true );
	}
	if ( strlen( $bytes ) !== @file_put_contents( root() . $copy, $bytes ) ) {
		throw Refusal::input( "output-dir $directory cannot be written in the guest" );
	}
	return $copy;
}

/**
 * Returns the directories of a relative path, with characters that the bundle does not allow replaced.
 *
 * @param string $path Relative path; '' and `.` are the base directory.
 * @return list<string>
 */
function path_segments( string $path ): array {
	$segments = array();
	foreach ( explode( '/', $path ) as $segment ) {
		if ( '..' === $segment ) {
			throw Refusal::input( sprintf( 'output-dir is %s, but must not contain ..', Arguments::shown( $path ) ) );
		}
		$segment = ltrim( (string) preg_replace( '/[^A-Za-z0-9._-]+/', '-', $segment ), '.-_' );
		if ( '' !== $segment ) {
			$segments[] = substr( $segment, 0, 100 );
		}
	}
	if ( count( $segments ) > 8 ) {
		throw Refusal::input( sprintf( 'output-dir is %s, but must be at most 8 directories deep', Arguments::shown( $path ) ) );
	}
	return $segments;
}
