--TEST--
In a PHP web server a run that a request leaves open ends with the request, and runners inherit no server socket
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';

$server = proc_open(
	[ PHP_BINARY, '-n', '-d', 'extension=' . getenv( 'CODEBOX_SO' ), '-d', 'wp_codebox.runner=' . __DIR__ . '/fixtures/fake-runner', '-d', 'display_errors=0', '-d', 'log_errors=0', '-S', '127.0.0.1:0', __DIR__ . '/fixtures/server.php' ],
	[ 0 => [ 'file', '/dev/null', 'r' ], 1 => [ 'file', '/dev/null', 'w' ], 2 => [ 'pipe', 'w' ] ],
	$pipes
);
register_shutdown_function( static fn() => proc_terminate( $server, SIGKILL ) );
// The server prints its address.
preg_match( '~\(http://([\d.:]+)\) started~', (string) fgets( $pipes[2] ), $said );
$where = $said[1];
$get = static function ( string $query ) use ( $where ): string {
	for ( $i = 0; $i < 300; ++$i ) {
		$answer = @file_get_contents( "http://$where/?$query", false, stream_context_create( [ 'http' => [ 'ignore_errors' => true, 'timeout' => 60 ] ] ) );
		if ( false !== $answer ) {
			return $answer;
		}
		usleep( 20_000 );
	}
	return 'no server';
};
$pid    = $get( 'do=pid' );
$marker = marker();
var_dump( preg_match( '/^run_/', $get( 'do=leave&marker=' . urlencode( $marker ) ) ), file_says( $marker, 'eof' ) );
$marker = marker();
$get( 'do=fatal&marker=' . urlencode( $marker ) );
var_dump( file_says( $marker, 'eof' ) );
$sockets = json_decode( $get( 'do=sockets' ), true );
var_dump( $sockets['server'] >= 2, $sockets['shared'] );
var_dump( $get( 'do=run' ) );

// The same process answers, and it has no unreaped child.
var_dump( $get( 'do=pid' ) === $pid, zombies( (int) $pid ) );
?>
--EXPECT--
int(1)
bool(true)
bool(true)
bool(true)
array(0) {
}
string(9) "succeeded"
bool(true)
int(0)
