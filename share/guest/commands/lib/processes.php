<?php
/**
 * Child processes of a command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Runs a program to its end.
 *
 * @param list<string>         $words       Program and arguments, passed without a shell.
 * @param string               $input       Standard input.
 * @param array<string,string> $environment Additional environment variables.
 * @param int                  $most        Maximum number of bytes stored per stream.
 * @return array{exitCode: int, stdout: string, stderr: string, cut: bool}
 */
function process( array $words, string $input, array $environment, int $most ): array {
	$given   = tmpfile();
	$process = false;
	$pipes   = array();
	if ( is_resource( $given ) && strlen( $input ) === fwrite( $given, $input ) && rewind( $given ) ) {
		$process = proc_open( $words, array( $given, array( 'pipe', 'w' ), array( 'pipe', 'w' ) ), $pipes, null, $environment + getenv() );
	}
	if ( ! is_resource( $process ) ) {
		throw Refusal::failed( sprintf( 'the program %s could not be started', Arguments::shown( $words[0] ?? '' ) ) );
	}
	$kept = array( 1 => '', 2 => '' );
	$cut  = false;
	while ( $open = array_filter( $pipes, static fn ( $pipe ): bool => ! feof( $pipe ) ) ) {
		$read = $open;
		$none = null;
		if ( (int) stream_select( $read, $none, $none, 5 ) > 0 ) {
			foreach ( $read as $number => $pipe ) {
				$piece            = (string) fread( $pipe, 65536 );
				$room             = max( 0, $most - strlen( $kept[ $number ] ) );
				$cut              = $cut || strlen( $piece ) > $room;
				$kept[ $number ] .= substr( $piece, 0, $room );
			}
		}
	}
	return array(
		'exitCode' => proc_close( $process ),
		'stdout'   => mb_scrub( $kept[1], 'UTF-8' ),
		'stderr'   => mb_scrub( $kept[2], 'UTF-8' ),
		'cut'      => $cut,
	);
}

/**
 * Splits a command line of WP-CLI; a leading `wp` is left out.
 *
 * @param string $line Command line.
 * @return list<string>
 */
function wp_cli_words( string $line ): array {
	$words = shell_words( $line );
	return 'wp' === ( $words[0] ?? '' ) ? array_slice( $words, 1 ) : $words;
}

/**
 * Splits a command line like a shell, without expansions.
 *
 * @param string $line Command line.
 * @return list<string>
 */
function shell_words( string $line ): array {
	$words = array();
	$word  = null;
	$quote = '';
	for ( $i = 0, $length = strlen( $line ); $i < $length; $i++ ) {
		$char = $line[ $i ];
		if ( '' !== $quote ) {
			if ( $char === $quote ) {
				$quote = '';
			} elseif ( '\\' === $char && '"' === $quote && $i + 1 < $length && str_contains( "\"\\$`\n", $line[ $i + 1 ] ) ) {
				$word .= $line[ ++$i ];
			} else {
				$word .= $char;
			}
		} elseif ( "'" === $char || '"' === $char ) {
			$quote = $char;
			$word  = (string) $word;
		} elseif ( '\\' === $char ) {
			if ( $i + 1 >= $length ) {
				throw Refusal::input( 'the command line ends with a backslash' );
			}
			$word .= $line[ ++$i ];
		} elseif ( ctype_space( $char ) ) {
			if ( null !== $word ) {
				$words[] = $word;
			}
			$word = null;
		} else {
			$word .= $char;
		}
	}
	if ( '' !== $quote ) {
		throw Refusal::input( "the command line has an unclosed $quote" );
	}
	if ( null !== $word ) {
		$words[] = $word;
	}
	return $words;
}
