--TEST--
A runner socket is used and checked when it is set, and no runner is spawned in its place
--SKIPIF--
<?php 0 === (int) trim( shell_exec( 'id -u' ) ) || die( 'skip only root can listen as somebody else' );
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';

$directory = sys_get_temp_dir() . '/wpcb-' . bin2hex( random_bytes( 6 ) );
mkdir( $directory );
chmod( $directory, 0777 );
$state = "$directory/state";
mkdir( $state, 0700 );
register_shutdown_function( static fn() => shell_exec( 'rm -rf ' . escapeshellarg( $directory ) ) );
/** Starts the listener and waits until it accepts connections. */
$listen = static function ( string $name, string $runner, int $user = 0 ) use ( $directory ): array {
	$path = "$directory/$name";
	$null = [ 'file', '/dev/null', 'r+' ];
	// Uses the php.ini of the system, which loads the posix extension.
	$command = array_merge( [ PHP_BINARY, __DIR__ . '/fixtures/listener.php', $path, $runner ], 0 === $user ? [] : [ (string) $user ] );
	$process = proc_open( $command, [ $null, [ 'pipe', 'w' ], $null ], $pipes, null, [] );
	fgets( $pipes[1] );
	register_shutdown_function( static fn() => is_resource( $process ) && proc_terminate( $process, 9 ) );
	return [ $path, $process ];
};
// A copy in a directory that every user can read.
$fake = "$directory/fake-runner";
copy( __DIR__ . '/fixtures/fake-runner', $fake );
chmod( $fake, 0755 );
$start = '$run = WPCodebox\Native\Run::start( ...request( "echo" ) ); echo $run->wait()["outcome"], "\n";';
/** Returns the output of a child that starts a run through the socket. The spawned supervisor would succeed. */
$through = static function ( string $socket, string $code, array $settings = [] ) use ( $state ): string {
	return in_child( $code, $settings + [ 'wp_codebox.runner_socket' => $socket, 'wp_codebox.state_dir' => $state ] )[1];
};
$refused = static fn( string $socket, array $settings = [] ): string => $through( $socket, 'try { WPCodebox\Native\Run::start( ...request( "echo" ) ); echo "started"; } catch ( WPCodebox\Native\Exception $e ) { echo $e->errorCode, " ", $e->data["setting"], ": ", str_replace( ' . var_export( $directory, true ) . ', "DIR", $e->getMessage() ); }', $settings ) . "\n";

echo "a run through the socket\n";
[ $good ] = $listen( 'good', $fake );
$argv     = '$run = WPCodebox\Native\Run::start( ...request( "facts" ) ); $run->wait( static function ( $event ) { echo implode( " ", $event["data"]["argv"] ), "\n"; } );';
echo $through( $good, $start . $argv . 'echo zombies(), "\n";' );
// Positive control: without the setting a supervisor is spawned.
echo $through( '', $argv );

echo "a run ends with its caller, unless it was detached\n";
foreach ( [ 'attached' => 'ended', 'detached' => 'went on' ] as $mode => $expected ) {
	$marker = marker();
	$through( $good, '$run = WPCodebox\Native\Run::start( ...request( "survives", [ "mode" => "' . $mode . '", "provenance" => [ "marker" => ' . var_export( $marker, true ) . ' ] ] ) ); $run->wait( static fn() => exit( 0 ) );' );
	var_dump( file_says( $marker, $expected ) );
}

echo "refused\n";
echo $refused( "$directory/none" );
[ $left, $process ] = $listen( 'left', $fake );
proc_terminate( $process, 9 );
proc_close( $process );
echo $refused( $left );
file_put_contents( "$directory/file", '' );
echo $refused( "$directory/file" );
echo $refused( 'relative' );
echo $refused( '/' . str_repeat( 'x', 120 ) );
[ $deaf ] = $listen( 'deaf', 'deaf' );
// These connections fill the listen queue; the next connection must time out.
$queue = [];
while ( ( $one = @stream_socket_client( "unix://$deaf", $code, $message, 0.2 ) ) && count( $queue ) < 64 ) {
	$queue[] = $one;
}
$since = microtime( true );
echo $refused( $deaf );
var_dump( microtime( true ) - $since < 60 );

echo "owner of the socket\n";
[ $foreign ] = $listen( 'foreign', $fake, 65534 );
echo $refused( $foreign );
// The same listener is accepted when its user owns the state directory.
chown( $state, 65534 );
echo $through( $foreign, $start );

echo "the self-test\n";
$row = 'foreach ( WPCodebox\Native\Extension::doctor()["checks"] as $check ) { echo $check["id"], " ", $check["status"], isset( $check["fix"] ) ? " with a fix" : "", "\n"; } echo WPCodebox\Native\Extension::doctor()["status"], "\n";';
chown( $state, 0 );
foreach ( [ $good, "$directory/none", "$directory/file", $foreign, '' ] as $socket ) {
	echo $through( $socket, $row );
}

echo "limits\n";
foreach ( [ '0', '257', 'many', '', '-1' ] as $max ) {
	echo $refused( '', [ 'wp_codebox.max_runs' => $max ] );
}
echo $through( '', $start . 'echo json_encode( WPCodebox\Native\Extension::info()["max_runs"] ), "\n";', [ 'wp_codebox.max_runs' => '256' ] );
?>
--EXPECT--
a run through the socket
succeeded
supervise
0
detach
a run ends with its caller, unless it was detached
bool(true)
bool(true)
refused
wp_codebox_runner_unavailable wp_codebox.runner_socket: there is no socket at DIR/none; start the service that makes it (`systemctl enable --now wp-codebox.socket`), or set wp_codebox.runner_socket to an empty text to let PHP start the runner
wp_codebox_runner_unavailable wp_codebox.runner_socket: no process listens on the socket DIR/left; start its service (`systemctl restart wp-codebox.socket`), or set wp_codebox.runner_socket to an empty text to let PHP start the runner
wp_codebox_runner_unavailable wp_codebox.runner_socket: no process listens on the socket DIR/file; start its service (`systemctl restart wp-codebox.socket`), or set wp_codebox.runner_socket to an empty text to let PHP start the runner
wp_codebox_config_invalid wp_codebox.runner_socket: wp_codebox.runner_socket must be an absolute path without `.` and `..` segments; set it in php.ini
wp_codebox_config_invalid wp_codebox.runner_socket: wp_codebox.runner_socket is too long for a socket path (121 bytes, at most 107); set a shorter path in php.ini
wp_codebox_runner_unavailable wp_codebox.runner_socket: the socket DIR/deaf did not accept the connection within 5 seconds; check the service that listens on it
bool(true)
owner of the socket
wp_codebox_runner_unavailable wp_codebox.runner_socket: the socket DIR/foreign belongs to user 65534, who is neither root, nor the owner of the state directory, nor this process's user; start the right service
succeeded
the self-test
runner-socket ok
ok
runner-socket error with a fix
error
runner-socket error with a fix
error
runner-socket error with a fix
error
ok
limits
wp_codebox_config_invalid wp_codebox.max_runs: wp_codebox.max_runs must be a whole number from 1 to 256; set it in php.ini
wp_codebox_config_invalid wp_codebox.max_runs: wp_codebox.max_runs must be a whole number from 1 to 256; set it in php.ini
wp_codebox_config_invalid wp_codebox.max_runs: wp_codebox.max_runs must be a whole number from 1 to 256; set it in php.ini
wp_codebox_config_invalid wp_codebox.max_runs: wp_codebox.max_runs must be a whole number from 1 to 256; set it in php.ini
wp_codebox_config_invalid wp_codebox.max_runs: wp_codebox.max_runs must be a whole number from 1 to 256; set it in php.ini
succeeded
256
