--TEST--
A detached run survives the end of its caller, and an attached run does not
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.max_runs=3
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\{Exception as E, Run};

function started( ?string &$marker, array $with = [] ): Run {
	$marker = marker();
	return Run::start( ...request( 'survives', $with + [ 'provenance' => [ 'marker' => $marker ] ] ) );
}
const DETACHED = [ 'mode' => 'detached' ];

echo "the mode in the request\n";
$asked = static function ( array $with ): array {
	Run::start( ...request( 'echo', $with ) )->wait(
		static function ( array $event ) use ( &$request ): void {
			$request = $event['data']['start']['request'];
		}
	);
	return [ $request['mode'], $request['max_runs'] ];
};
echo json_encode( [ $asked( [] ), $asked( [ 'mode' => 'attached' ] ), $asked( DETACHED ) ] ), "\n";
// A task can lower the run limit of the host and cannot raise it.
echo json_encode( [ $asked( [ 'max_runs' => 2 ] )[1], $asked( [ 'max_runs' => 99 ] )[1] ] ), "\n";
echo caught( static fn() => Run::start( ...request( 'echo', [ 'max_runs' => 0 ] ) ) )->getMessage(), "\n";
foreach ( [ 'loose', '', 1, [ 'detached' ] ] as $mode ) {
	echo caught( static fn() => Run::start( ...request( 'echo', [ 'mode' => $mode ] ) ) )->getMessage(), "\n";
}

echo "dropped\n";
$run = started( $marker );
unset( $run );
var_dump( file_says( $marker, 'ended' ) );
$run = started( $marker, DETACHED );
unset( $run );
var_dump( file_says( $marker, 'went on' ) );

echo "detached later\n";
$run = started( $marker );
$run->detach();
$run->detach();
var_dump( $run->wait( null, 20 ) );
unset( $run );
var_dump( file_says( $marker, 'detach' ), file_says( $marker, 'went on' ), count( file( $marker ) ) );

echo "a detached run can be waited for and cancelled by method and callback\n";
$run = started( $marker, DETACHED );
$run->cancel();
var_dump( $run->wait()['outcome'] );
$run->detach();
$run = started( $marker );
$run->detach();
var_dump( $run->wait( static fn() => false )['outcome'], file_says( $marker, 'cancel' ) );
var_dump( $run->wait()['outcome'] );

echo "an exception ends the wait, not the run, and the next wait works\n";
$run  = started( $marker, DETACHED );
$last = -1;
$at   = static function ( array $event ) use ( &$last ): void {
	if ( $event['data']['tick'] !== $last + 1 ) {
		echo 'WRONG ';
	}
	$last = $event['data']['tick'];
	if ( 5 === $last ) {
		throw new DomainException( 'mine' );
	}
};
try {
	$run->wait( $at );
} catch ( DomainException $e ) {
	echo $e->getMessage(), ' ', $last, "\n";
}
while ( $last <= 5 && null === $run->wait( $at, 50 ) ) {
	continue;
}
var_dump( $last > 5 );
$run->cancel();
var_dump( $run->wait()['outcome'] );

echo "a start that is interrupted cancels the run\n";
$marker = marker();
pcntl_async_signals( true );
// Interrupts only when the supervisor waits too, which its marker file shows.
pcntl_signal( SIGALRM, static fn() => is_file( $marker ) ? throw new RuntimeException( 'enough' ) : pcntl_alarm( 1 ) );
pcntl_alarm( 1 );
try {
	Run::start( ...request( 'never-accepts', DETACHED + [ 'provenance' => [ 'marker' => $marker ] ] ) );
} catch ( RuntimeException $e ) {
	var_dump( $e->getMessage(), file_says( $marker, 'cancel' ) );
}

echo "a runner that closes the connection\n";
$run = Run::start( ...request( 'dies', DETACHED ) );
echo caught( static fn() => $run->wait() )->getMessage() === 'the runner of ' . $run->id() . ' closed the connection before the run ended; Runs::get() shows whether the run continues' ? 'ok' : 'WRONG', "\n";

echo "a forked child\n";
$run   = started( $marker );
$child = pcntl_fork();
if ( 0 === $child ) {
	try {
		$run->detach();
	} catch ( E $e ) {
		exit( 'wp_codebox_input_invalid' === $e->errorCode ? 5 : 6 );
	}
	exit( 7 );
}
pcntl_waitpid( $child, $status );
var_dump( pcntl_wexitstatus( $status ) );
unset( $run );
var_dump( file_says( $marker, 'ended' ) );

// Each way in which a caller can end, attached and detached; the fake supervisor records what it read.
$ends = static function ( string $label, string $body, string $before = '' ): void {
	$said = [];
	foreach ( [ 'attached' => 'ended', 'detached' => 'went on' ] as $mode => $expected ) {
		$marker = marker();
		[ $status, $output ] = in_child(
			$before . '$run = WPCodebox\Native\Run::start( ...request( "survives", [ "mode" => ' . var_export( $mode, true ) . ', "provenance" => [ "marker" => ' . var_export( $marker, true ) . ' ] ] ) );
			$body = static function () { ' . $body . ' }; $run->wait( $body ); echo "not reached";'
		);
		$said[] = file_says( $marker, $expected ) && '' === $output ? "$mode $expected ($status)" : "$mode WRONG $output";
	}
	echo $label, ': ', implode( ', ', $said ), "\n";
};
$ends( 'exit', 'exit( 7 );' );
$ends( 'fatal error', 'trigger_error( "x", E_USER_ERROR );' );
$ends( 'memory limit', 'str_repeat( "x", 100 * 1024 * 1024 );', 'ini_set( "memory_limit", "32M" );' );
$ends( 'time limit', 'while ( true ) { }', 'set_time_limit( 1 );' );
$ends( 'uncaught', 'throw new Exception( "x" );' );
$ends( 'SIGKILL', 'shell_exec( "kill -9 " . getmypid() );' );
?>
--EXPECT--
the mode in the request
[["attached",3],["attached",3],["detached",3]]
[2,3]
InvalidInputException wp_codebox_input_invalid
max_runs must be a whole number from 1
InvalidInputException wp_codebox_input_invalid
mode must be attached or detached
InvalidInputException wp_codebox_input_invalid
mode must be attached or detached
InvalidInputException wp_codebox_input_invalid
mode must be attached or detached
InvalidInputException wp_codebox_input_invalid
mode must be attached or detached
dropped
bool(true)
bool(true)
detached later
NULL
bool(true)
bool(true)
int(3)
a detached run can be waited for and cancelled by method and callback
string(9) "cancelled"
string(9) "cancelled"
bool(true)
string(9) "cancelled"
an exception ends the wait, not the run, and the next wait works
mine 5
bool(true)
string(9) "cancelled"
a start that is interrupted cancels the run
string(6) "enough"
bool(true)
a runner that closes the connection
UnavailableException wp_codebox_runner_unavailable
ok
a forked child
int(5)
bool(true)
exit: attached ended (7), detached went on (7)
fatal error: attached ended (255), detached went on (255)
memory limit: attached ended (255), detached went on (255)
time limit: attached ended (255), detached went on (255)
uncaught: attached ended (255), detached went on (255)
SIGKILL: attached ended (9), detached went on (9)
