<?php
/**
 * A TCP listener on the loopback interface of the host that counts connections.
 *
 * Usage: php listener.php PORT_FILE VISITS_FILE. The kernel chooses the port, and the
 * listener writes it to PORT_FILE; each connection adds one line to VISITS_FILE. The
 * listener runs until it is killed.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

$server = stream_socket_server( 'tcp://127.0.0.1:0' );
if ( false === $server ) {
	exit( 1 );
}
file_put_contents( $argv[2], '' );
// Written to a temporary name and renamed, so that a process waiting for the port never reads a partial file.
file_put_contents( $argv[1] . '.new', (string) parse_url( 'tcp://' . stream_socket_get_name( $server, false ), PHP_URL_PORT ) );
rename( $argv[1] . '.new', $argv[1] );
while ( true ) {
	$visitor = @stream_socket_accept( $server, 3600 );
	if ( false !== $visitor ) {
		file_put_contents( $argv[2], "visit\n", FILE_APPEND );
		fclose( $visitor );
	}
}
