--TEST--
The runner inherits no environment, descriptors, signals, session or directory and leaves no zombie
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

// Things that a web server worker could leak: an environment variable, an open file, a
// listener, ignored and blocked signals.
putenv( 'LEAKED=1' );
$file     = fopen( __FILE__, 'r' );
$listener = stream_socket_server( 'tcp://127.0.0.1:0' );
pcntl_signal( SIGWINCH, SIG_IGN );
pcntl_sigprocmask( SIG_BLOCK, [ SIGUSR2 ] );
$bit = static fn( string $mask, int $signal ): bool => (bool) ( hexdec( substr( $mask, -8 ) ) >> ( $signal - 1 ) & 1 );

/** Facts about a child process that PHP itself starts: the positive control. */
function control(): array {
	$code    = 'preg_match( "/^SigBlk:\s*(\w+)$.*^SigIgn:\s*(\w+)$/ms", file_get_contents( "/proc/self/status" ), $m );'
		. 'echo json_encode( [ "env" => getenv( "LEAKED" ), "fds" => array_map( static fn( $f ) => (string) @readlink( "/proc/self/fd/$f" ), scandir( "/proc/self/fd" ) ), "blocked" => $m[1], "ignored" => $m[2] ] );';
	$process = proc_open( [ PHP_BINARY, '-n', '-r', $code ], [ 1 => [ 'pipe', 'w' ] ], $pipes );
	$facts   = json_decode( stream_get_contents( $pipes[1] ), true );
	proc_close( $process );
	return $facts;
}
$control = control();
var_dump( $control['env'], in_array( __FILE__, $control['fds'], true ), $bit( $control['ignored'], SIGWINCH ), $bit( $control['blocked'], SIGUSR2 ) );
echo "--\n";

$run = Run::start( ...request( 'facts' ) );
$run->wait(
	static function ( array $event ) use ( &$facts ): void {
		$facts = $event['data'];
	}
);
var_dump( $facts['env'], $facts['argv'] === [ 'detach' ], $facts['cwd'] );
$fds = $facts['fds'];
var_dump( $fds['fd0'], $fds['fd1'], $fds['fd2'], str_starts_with( $fds['fd3'], 'socket:' ) );
// The remaining descriptors are files that the fake supervisor opened: its script, and copies of its socket.
$foreign = array_filter(
	array_slice( $fds, 4 ),
	static fn( string $link ): bool => ! str_ends_with( $link, '/fake-runner' ) && $link !== $fds['fd3'] && ! str_starts_with( $link, '/proc/' ) && '' !== $link
);
var_dump( $foreign );
var_dump( $bit( $facts['ignored'], SIGWINCH ), $bit( $facts['blocked'], SIGUSR2 ) );
$session = (int) explode( ' ', file_get_contents( '/proc/self/stat' ) )[5];
var_dump( $facts['session'] !== $session, $facts['session'] > 1 );
var_dump( zombies() );

// When a process has closed its standard streams, the next opened files get descriptors 0 to 2.
$written = marker();
in_child(
	'fclose( STDIN ); fclose( STDOUT ); fclose( STDERR );
	$run = WPCodebox\Native\Run::start( ...request( "facts" ) );
	$run->wait( static fn( $e ) => file_put_contents( ' . var_export( $written, true ) . ', json_encode( $e["data"]["fds"] ) ) );'
);
$fds = json_decode( file_get_contents( $written ), true );
var_dump( $fds['fd0'], $fds['fd1'], $fds['fd2'], str_starts_with( $fds['fd3'], 'socket:' ) );
?>
--EXPECT--
string(1) "1"
bool(true)
bool(true)
bool(true)
--
string(0) ""
bool(true)
string(1) "/"
string(9) "/dev/null"
string(9) "/dev/null"
string(9) "/dev/null"
bool(true)
array(0) {
}
bool(false)
bool(false)
bool(true)
bool(true)
int(0)
string(9) "/dev/null"
string(9) "/dev/null"
string(9) "/dev/null"
bool(true)
