--TEST--
A callback that returns false, throws, exits, fails, times out, re-enters or suspends is handled
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

function started( string $goal, ?string &$marker = null ): Run {
	$marker = marker();
	return Run::start( ...request( $goal, [ 'provenance' => [ 'marker' => $marker ] ] ) );
}

echo "returns false: the run is cancelled, its changes are recovered, no further calls\n";
$calls  = 0;
$run    = started( 'until-told', $marker );
$result = $run->wait(
	static function () use ( &$calls ) {
		return ++$calls < 3;
	}
);
var_dump( $calls, $result['outcome'], $result['exit_status'], file_says( $marker, 'cancel' ) );

echo "null, 0 and '' are not false\n";
$calls = 0;
$run   = started( 'until-told', $marker );
$run->wait(
	static function () use ( &$calls ) {
		return [ null, 0, '', false ][ $calls++ ];
	}
);
var_dump( $calls );

echo "throws: the same exception leaves wait(), the runner reads end of file\n";
$run = started( 'until-told', $marker );
try {
	$run->wait(
		static function (): void {
			throw new DomainException( 'mine', 9 );
		}
	);
} catch ( DomainException $e ) {
	var_dump( $e->getMessage(), $e->getCode(), basename( $e->getFile() ), file_says( $marker, 'eof' ) );
}
caught( static fn() => $run->wait() );

echo "cancel from the callback\n";
$run    = started( 'until-told', $marker );
$result = $run->wait( static fn() => $run->cancel() );
var_dump( $result['outcome'], file_says( $marker, 'cancel' ) );

echo "cancel without waiting, then wait\n";
$run = started( 'quiet-until-told', $marker );
$run->cancel();
$run->cancel();
var_dump( $run->wait()['outcome'] );

echo "wait within wait\n";
$run = started( 'until-told', $marker );
$run->wait(
	static function () use ( $run ) {
		caught( static fn() => $run->wait() );
		return false;
	}
);

echo "a callable with too many parameters\n";
$run = started( 'until-told', $marker );
try {
	$run->wait( static fn( $a, $b ) => true );
} catch ( ArgumentCountError $e ) {
	var_dump( file_says( $marker, 'eof' ) );
}
try {
	started( 'until-told', $marker )->wait( 'no_such_function' );
} catch ( TypeError $e ) {
	echo $e->getMessage(), "\n";
}
var_dump( file_says( $marker, 'eof' ) );

echo "two runs in two fibers\n";
$fibers = [];
$order  = [];
foreach ( [ 'a', 'b' ] as $name ) {
	$fibers[ $name ] = new Fiber(
		static function () use ( $name, &$order ): string {
			$left = 3;
			return started( 'until-told' )->wait(
				static function () use ( $name, &$order, &$left ): bool {
					$order[] = $name;
					Fiber::suspend();
					return --$left > 0;
				}
			)['outcome'];
		}
	);
	$fibers[ $name ]->start();
}
while ( ! $fibers['a']->isTerminated() || ! $fibers['b']->isTerminated() ) {
	foreach ( $fibers as $fiber ) {
		$fiber->isTerminated() || $fiber->resume();
	}
}
var_dump( implode( '', $order ), $fibers['a']->getReturn(), $fibers['b']->getReturn() );

echo "an abandoned fiber\n";
$fiber = new Fiber( static fn() => started( 'until-told', $marker )->wait( static fn() => Fiber::suspend() ) );
$fiber->start();
unset( $fiber );
gc_collect_cycles();
var_dump( file_says( $marker, 'eof' ) );

// The supervisor must read end of file while the process still lives, so a shutdown function checks it.
$in_callback = static function ( string $label, string $body, string $before = '' ): void {
	[ $status, $output, $errors ] = in_child(
		$before . 'register_shutdown_function( static function () use ( &$marker ) { echo json_encode( file_says( $marker, "eof" ) ); } );
		$marker = marker();
		$run = WPCodebox\Native\Run::start( ...request( "until-told", [ "provenance" => [ "marker" => $marker ] ] ) );
		$run->wait( static function () { ' . $body . ' } ); echo "not reached";'
	);
	echo $label, ': ', $status, ' ', trim( $output ), ' ', preg_match( '/Fatal error: ([\w ]+?)(?: in \/| \(|:|$)/m', $errors, $m ) ? $m[1] : '-', "\n";
};
$in_callback( 'exit', 'exit( 7 );' );
$in_callback( 'fatal error', 'trigger_error( "x", E_USER_ERROR );' );
$in_callback( 'memory limit', 'str_repeat( "x", 100 * 1024 * 1024 );', 'ini_set( "memory_limit", "32M" );' );
$in_callback( 'time limit', 'while ( true ) { }', 'set_time_limit( 1 );' );
$in_callback( 'uncaught', 'throw new Exception( "x" );' );
?>
--EXPECT--
returns false: the run is cancelled, its changes are recovered, no further calls
int(3)
string(9) "cancelled"
int(130)
bool(true)
null, 0 and '' are not false
int(4)
throws: the same exception leaves wait(), the runner reads end of file
string(4) "mine"
int(9)
string(19) "12_run_callback.php"
bool(true)
ConflictException wp_codebox_run_cancelled
cancel from the callback
string(9) "cancelled"
bool(true)
cancel without waiting, then wait
string(9) "cancelled"
wait within wait
InvalidInputException wp_codebox_input_invalid
a callable with too many parameters
bool(true)
Invalid value given for argument `onEvent`.
bool(true)
two runs in two fibers
string(6) "ababab"
string(9) "cancelled"
string(9) "cancelled"
an abandoned fiber
bool(true)
exit: 7 true -
fatal error: 255 true x
memory limit: 255 true Allowed memory size of 33554432 bytes exhausted
time limit: 255 true Maximum execution time of 1 second exceeded
uncaught: 255 true Uncaught Exception
