<?php
/**
 * Runs PHP scripts in forks of this process, because starting PHP with its extensions and reading the compiled
 * files takes as long as running WP-CLI. Each line on STDIN is a request; the answer on STDOUT is the exit status.
 *
 * A script runs in the global scope, as PHP runs the script that its command line names.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

// PHP has no function that replaces the file descriptors behind the constants STDIN, STDOUT and STDERR.
$libc = FFI::cdef( 'int open( const char *, int ); int close( int );' );
do {
	$request = fgets( STDIN );
	if ( false === $request ) {
		exit;
	}
	$child = pcntl_fork();
	if ( 0 !== $child ) {
		pcntl_waitpid( $child, $status );
		// As proc_close(): the exit status, or the number of the signal that ended the process.
		fwrite( STDOUT, ( pcntl_wifexited( $status ) ? pcntl_wexitstatus( $status ) : $status ) . "\n" );
	}
} while ( 0 !== $child );
[ $argv, $environment, $directory, $files ] = unserialize( base64_decode( $request ) );
foreach ( $files as $descriptor => $file ) {
	$libc->close( $descriptor );
	// open() takes the lowest free number, which is the one just closed. 0x401 is O_WRONLY | O_APPEND.
	$libc->open( $file, 0 === $descriptor ? 0 : 0x401 );
}
foreach ( array_keys( array_diff_key( getenv(), $environment ) ) as $name ) {
	putenv( (string) $name );
	unset( $_SERVER[ $name ] );
}
foreach ( $environment as $name => $value ) {
	putenv( "$name=$value" );
	$_SERVER[ $name ] = $value;
}
chdir( $directory );
$argc    = count( $argv );
$_SERVER = array_merge(
	$_SERVER,
	array_fill_keys( [ 'PHP_SELF', 'SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_TRANSLATED' ], $argv[0] ),
	[ 'argv' => $argv, 'argc' => $argc, 'REQUEST_TIME_FLOAT' => microtime( true ), 'REQUEST_TIME' => time() ]
);
unset( $libc, $request, $child, $status, $environment, $directory, $files, $descriptor, $file, $name, $value );
require $argv[0];
