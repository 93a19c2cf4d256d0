--TEST--
A runner that is missing, dies or sends an invalid protocol is an exception
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

foreach ( [ 'dies-before-accepting', 'other-protocol', 'other-run', 'busy' ] as $goal ) {
	caught( static fn() => Run::start( ...request( $goal ) ), $goal );
}
foreach ( [ 'dies', 'dies-within-a-frame', 'fails-late', 'not-json', 'no-frame', 'result-of-another', 'endless-line', 'outcome made_up' ] as $goal ) {
	$run    = Run::start( ...request( $goal ) );
	$events = 0;
	$wait   = static function () use ( $run, &$events ): void {
		$run->wait(
			static function () use ( &$events ): void {
				++$events;
			}
		);
	};
	$first  = caught( $wait, $goal );
	if ( 'dies' === $goal ) {
		// Events before the death are delivered, the exception names the run, and a second wait() throws the same.
		var_dump( $events, str_contains( $first->getMessage(), $run->id() ), $first->data['run_id'] === $run->id() );
		caught( $wait, 'again' );
		$run->cancel();
	}
}
foreach ( [ '/nonexistent/runner', '/etc/passwd', '/bin/true', '/bin/false' ] as $runner ) {
	[ , $output ] = in_child( 'caught( static fn() => WPCodebox\Native\Run::start( ...request( "echo" ) ) ); echo zombies(), "\n";', [ 'wp_codebox.runner' => $runner ] );
	echo "$runner: $output";
}
// A request that is longer than a frame although each part is within the limits of conversion.
$e = caught( static fn() => Run::start( ...request( 'echo', [ 'provenance' => [ 'x' => str_repeat( "\u{1}", 4 * 1024 * 1024 ) ] ] ) ) );
echo $e->getMessage(), "\n";
// Positive control.
var_dump( Run::start( ...request( 'echo' ) )->wait()['outcome'], zombies() );
?>
--EXPECTF--
dies-before-accepting: UnavailableException wp_codebox_runner_unavailable
other-protocol: UnavailableException wp_codebox_extension_stale
other-run: UnavailableException wp_codebox_runner_unavailable
busy: UnavailableException wp_codebox_busy
dies: UnavailableException wp_codebox_runner_unavailable
int(1)
bool(true)
bool(true)
again: UnavailableException wp_codebox_runner_unavailable
dies-within-a-frame: UnavailableException wp_codebox_runner_unavailable
fails-late: UnavailableException wp_codebox_sandbox_start_failed
not-json: UnavailableException wp_codebox_runner_unavailable
no-frame: UnavailableException wp_codebox_runner_unavailable
result-of-another: UnavailableException wp_codebox_runner_unavailable
endless-line: UnavailableException wp_codebox_runner_unavailable
outcome made_up: UnavailableException wp_codebox_runner_unavailable
/nonexistent/runner: UnavailableException wp_codebox_runner_unavailable
0
/etc/passwd: UnavailableException wp_codebox_runner_unavailable
0
/bin/true: UnavailableException wp_codebox_runner_unavailable
0
/bin/false: UnavailableException wp_codebox_runner_unavailable
0
InvalidInputException wp_codebox_input_invalid
the request is %d bytes long, but at most 16777216 are accepted; put large inputs into staged files
string(9) "succeeded"
int(0)
