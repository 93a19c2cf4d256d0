--TEST--
Waiting in steps delivers each event once, keeps its timeout and uses almost no CPU time
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

/** Waits in steps until the end; returns the numbers of the events, the steps and the result. */
function in_steps( Run $run, int $timeout ): array {
	$numbers = [];
	$steps   = 0;
	do {
		++$steps;
		$result = $run->wait(
			static function ( array $event ) use ( &$numbers ): void {
				$numbers[] = $event['data']['n'];
			},
			$timeout
		);
	} while ( null === $result );
	return [ $numbers, $steps, $result['outcome'] ];
}
/** Returns the shortest of five waits that time out, in milliseconds: a paused machine can delay any single one. */
function quickest( callable $wait ): float {
	$quickest = INF;
	for ( $i = 0; $i < 5; ++$i ) {
		$since    = microtime( true );
		$result   = $wait();
		$quickest = null === $result ? min( $quickest, 1000 * ( microtime( true ) - $since ) ) : -1.0;
	}
	return $quickest;
}

foreach ( [ 1, 7, 25, 0 ] as $timeout ) {
	[ $numbers, $steps, $outcome ] = in_steps( Run::start( ...request( 'numbered' ) ), $timeout );
	echo $timeout, ': ', $numbers === range( 0, 1999 ) ? 'each once, in order' : 'WRONG', ', ', $steps > 1 ? 'several steps' : "$steps steps", ", $outcome\n";
}

echo "the timeout is kept without events\n";
$run   = Run::start( ...request( 'quiet-until-told' ) );
$took = quickest( static fn() => $run->wait( null, 300 ) );
var_dump( $took >= 299, $took < 600 );
$took = quickest( static fn() => $run->wait( null, 0 ) );
var_dump( $took >= 0, $took < 50 );

echo "the timeout is kept with many events\n";
$run    = Run::start( ...request( 'floods' ) );
$events = 0;
$count  = static function () use ( &$events ): void {
	++$events;
};
$took   = quickest( static fn() => $run->wait( $count, 300 ) );
var_dump( $took >= 0, $took < 600, $events > 0 );
$took = quickest( static fn() => $run->wait( $count, 0 ) );
var_dump( $took >= 0, $took < 600 );
$run->cancel();
var_dump( $run->wait()['outcome'] );

echo "after the end\n";
$run    = Run::start( ...request( 'echo' ) );
$result = $run->wait();
var_dump( $run->wait() === $result, $run->wait( null, 0 ) === $result, $run->wait( static fn() => print( 'again' ), 5 ) === $result );
$run = Run::start( ...request( 'fails-late' ) );
while ( true ) {
	if ( null !== caught( static fn() => $run->wait( null, 20 ) ?? usleep( 1000 ) ) ) {
		break;
	}
}
caught( static fn() => $run->wait( null, 0 ) );

echo "a callback that returns false, in a step\n";
$run   = Run::start( ...request( 'until-told' ) );
$calls = 0;
while ( null === ( $result = $run->wait( static function () use ( &$calls ) { return ++$calls < 3; }, 20 ) ) ) {
	continue;
}
var_dump( $result['outcome'] );

echo "negative, zero and huge timeouts\n";
$run = Run::start( ...request( 'until-told' ) );
echo caught( static fn() => $run->wait( null, -1 ) )->getMessage(), "\n";
var_dump( $run->wait( null, 0 ) );
$run->cancel();
var_dump( $run->wait( null, PHP_INT_MAX )['outcome'] );

echo "eight runs at once\n";
$usage = static function (): float {
	$usage = getrusage();
	return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ( $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec'] ) / 1e6;
};
$runs  = [];
$seen  = [];
for ( $i = 0; $i < 8; ++$i ) {
	$runs[ $i ] = Run::start( ...request( 'slow' ) );
	$seen[ $i ] = [];
}
$used  = $usage();
$since = microtime( true );
$ended = [];
while ( $runs ) {
	foreach ( $runs as $i => $run ) {
		$result = $run->wait(
			static function ( array $event ) use ( &$seen, $i ): void {
				$seen[ $i ][] = $event['data']['n'];
			},
			25
		);
		if ( null !== $result ) {
			$ended[] = $result['outcome'];
			unset( $runs[ $i ] );
		}
	}
}
// A delayed process finds all events at once; the minimum of one second avoids a division by zero.
$share = ( $usage() - $used ) / max( 1.0, microtime( true ) - $since );
var_dump( array_unique( $ended ), array_unique( array_map( 'json_encode', $seen ) ), $share < 0.1 ? 'idle' : $share );
?>
--EXPECT--
1: each once, in order, several steps, succeeded
7: each once, in order, several steps, succeeded
25: each once, in order, several steps, succeeded
0: each once, in order, several steps, succeeded
the timeout is kept without events
bool(true)
bool(true)
bool(true)
bool(true)
the timeout is kept with many events
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
string(9) "cancelled"
after the end
bool(true)
bool(true)
bool(true)
UnavailableException wp_codebox_sandbox_start_failed
UnavailableException wp_codebox_sandbox_start_failed
a callback that returns false, in a step
string(9) "cancelled"
negative, zero and huge timeouts
InvalidInputException wp_codebox_input_invalid
timeoutMs must be a whole number from 0, or null to wait for the end
NULL
string(9) "cancelled"
eight runs at once
array(1) {
  [0]=>
  string(9) "succeeded"
}
array(1) {
  [0]=>
  string(21) "[0,1,2,3,4,5,6,7,8,9]"
}
string(4) "idle"
