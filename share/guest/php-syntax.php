<?php
/**
 * Checks the syntax of PHP files without running them.
 *
 * Reads paths from standard input, each ended by a NUL byte. Prints the version of PHP, then a line of
 * JSON for each file that was checked: [position in the list from 0, null or PHP's message].
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

const CODEBOX_AT_ONCE = 4;
const CODEBOX_SECONDS = 10;
const CODEBOX_MESSAGE = 1024;

$paths   = explode( "\0", (string) stream_get_contents( STDIN ) );
$running = array();
$next    = 0;
array_pop( $paths );
echo PHP_VERSION, "\n";

while ( $next < count( $paths ) || array() !== $running ) {
	while ( $next < count( $paths ) && count( $running ) < CODEBOX_AT_ONCE ) {
		$process = proc_open(
			array( PHP_BINARY, '-n', '-d', 'display_errors=stderr', '-l', $paths[ $next ] ),
			array( array( 'file', '/dev/null', 'r' ), array( 'file', '/dev/null', 'w' ), array( 'pipe', 'w' ) ),
			$pipes
		);
		if ( false === $process ) {
			// The limit of processes is reached. Continue when another one has ended.
			if ( array() === $running ) {
				exit( 1 );
			}
			break;
		}
		$running[ $next ] = array(
			'process' => $process,
			'pipe'    => $pipes[2],
			'until'   => microtime( true ) + CODEBOX_SECONDS,
			'text'    => '',
		);
		++$next;
	}
	$ready = array_column( $running, 'pipe' );
	$none  = null;
	stream_select( $ready, $none, $none, 0, 100000 );
	foreach ( $running as $position => $one ) {
		$message = null;
		if ( in_array( $one['pipe'], $ready, true ) ) {
			$part                          = (string) fread( $one['pipe'], 8192 );
			$running[ $position ]['text'] .= substr( $part, 0, CODEBOX_MESSAGE - strlen( $one['text'] ) );
		}
		if ( feof( $one['pipe'] ) ) {
			fclose( $one['pipe'] );
			if ( 0 !== proc_close( $one['process'] ) ) {
				$lines   = preg_split( '/\R/', $running[ $position ]['text'], -1, PREG_SPLIT_NO_EMPTY );
				$message = trim( $lines[0] ?? 'php -l refuses it' );
				$message = str_replace( ' in ' . $paths[ $position ], ' in this file', $message );
			}
		} elseif ( microtime( true ) > $one['until'] ) {
			proc_terminate( $one['process'], 9 );
			fclose( $one['pipe'] );
			proc_close( $one['process'] );
			$message = sprintf( 'PHP did not check it within %d seconds', CODEBOX_SECONDS );
		} else {
			continue;
		}
		unset( $running[ $position ] );
		echo json_encode( array( $position, $message ), JSON_INVALID_UTF8_SUBSTITUTE ), "\n";
	}
}
