--TEST--
Dropping a run handle cancels the run, except in a forked child; signals interrupt waiting
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\{Exception as E, Run};

function started( string $goal, ?string &$marker = null ): Run {
	$marker = marker();
	return Run::start( ...request( $goal, [ 'provenance' => [ 'marker' => $marker ] ] ) );
}
function fails( callable $call ): void {
	try {
		$call();
		echo "no error\n";
	} catch ( Throwable $e ) {
		echo get_class( $e ), ': ', $e->getMessage(), "\n";
	}
}

$run = started( 'until-told', $marker );
fails( static fn() => clone $run );
fails( static fn() => serialize( $run ) );
fails( static fn() => unserialize( 'O:20:"WPCodebox\Native\Run":0:{}' ) );
fails( static fn() => new Run() );
fails( static fn() => ( new ReflectionClass( Run::class ) )->newInstanceWithoutConstructor() );
var_dump( count( (array) $run ) );

echo "dropped\n";
var_dump( is_file( $marker ) );
unset( $run );
var_dump( file_says( $marker, 'eof' ) );

echo "a forked child\n";
$run   = started( 'quiet-until-told', $marker );
$child = pcntl_fork();
if ( 0 === $child ) {
	$codes = [];
	foreach ( [ static fn() => $run->wait(), static fn() => $run->cancel() ] as $call ) {
		try {
			$call();
		} catch ( E $e ) {
			$codes[] = $e->errorCode;
		}
	}
	exit( $codes === [ 'wp_codebox_input_invalid', 'wp_codebox_input_invalid' ] ? 5 : 6 );
}
pcntl_waitpid( $child, $status );
usleep( 100_000 );
var_dump( pcntl_wexitstatus( $status ), is_file( $marker ) );
$run->cancel();
var_dump( $run->wait()['outcome'] );

echo "a signal handler runs while waiting, and may throw\n";
pcntl_async_signals( true );
$alarms = 0;
pcntl_signal(
	SIGALRM,
	static function () use ( &$alarms ): void {
		if ( ++$alarms < 2 ) {
			pcntl_alarm( 1 );
			return;
		}
		throw new RuntimeException( 'enough' );
	}
);
$run = started( 'quiet-until-told', $marker );
pcntl_alarm( 1 );
$before = microtime( true );
try {
	$run->wait();
} catch ( RuntimeException $e ) {
	var_dump( $e->getMessage(), $alarms, microtime( true ) - $before < 15.0, file_says( $marker, 'eof' ) );
}

echo "a signal handler may also throw while the run starts\n";
$marker = marker();
// Interrupts only when the supervisor waits too, which its marker file shows.
pcntl_signal( SIGALRM, static fn() => is_file( $marker ) ? throw new RuntimeException( 'enough' ) : pcntl_alarm( 1 ) );
pcntl_alarm( 1 );
try {
	Run::start( ...request( 'never-accepts', [ 'provenance' => [ 'marker' => $marker ] ] ) );
} catch ( RuntimeException $e ) {
	var_dump( $e->getMessage(), file_says( $marker, 'waiting' ), file_says( $marker, 'eof' ) );
}

echo "a process that ignores SIGCHLD\n";
pcntl_signal( SIGCHLD, SIG_IGN );
var_dump( Run::start( ...request( 'echo' ) )->wait()['outcome'] );
pcntl_signal( SIGCHLD, SIG_DFL );
var_dump( zombies() );

echo "many runs leave no memory and no descriptor\n";
$fds   = static fn(): int => count( scandir( '/proc/self/fd' ) );
$count = static function ( int $rounds ): void {
	for ( $i = 0; $i < $rounds; ++$i ) {
		try {
			Run::start( ...request( 'x', [ 'goal' => '' ] ) );
		} catch ( E ) {
			continue;
		}
	}
};
Run::start( ...request( 'echo' ) )->wait();
$count( 10 );
$memory = memory_get_usage();
$open   = $fds();
$count( 2000 );
Run::start( ...request( 'echo' ) )->wait();
var_dump( memory_get_usage() - $memory, $fds() - $open );
?>
--EXPECT--
Error: Trying to clone an uncloneable object of class WPCodebox\Native\Run
Exception: Serialization of 'WPCodebox\Native\Run' is not allowed
Exception: Unserialization of 'WPCodebox\Native\Run' is not allowed
Error: Call to private WPCodebox\Native\Run::__construct() from global scope
ReflectionException: Class WPCodebox\Native\Run is an internal class marked as final that cannot be instantiated without invoking its constructor
int(0)
dropped
bool(false)
bool(true)
a forked child
int(5)
bool(false)
string(9) "cancelled"
a signal handler runs while waiting, and may throw
string(6) "enough"
int(2)
bool(true)
bool(true)
a signal handler may also throw while the run starts
string(6) "enough"
bool(true)
bool(true)
a process that ignores SIGCHLD
string(9) "succeeded"
int(0)
many runs leave no memory and no descriptor
int(0)
int(0)
