--TEST--
A tool of the calling site answers with the id of the tool request, and an invalid result is a failure
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

/** Waits with a tool function; prints the answers that the supervisor received. */
function answered( ?callable $tool ): void {
	$show = static function ( array $event ): void {
		$result = $event['data']['answered'];
		echo '  ', $result['request_id'], ' ', $result['schema'], ' ', $result['tool'], ' ', $result['status'], ' ', $result['error']['code'] ?? '-', ' ', json_encode( $result['output'] ?? null ), "\n";
	};
	echo Run::start( ...request( 'tools' ) )->wait( $show, null, $tool )['outcome'], "\n";
}

echo "answers with another request id or tool name\n";
answered(
	static fn( array $request ): array => [
		'status'     => 'succeeded',
		'request_id' => 'another',
		'tool'       => 'host.write',
		'output'     => $request['input'],
	]
);

echo "no tool function\n";
answered( null );

echo "invalid results\n";
$answers = [ null, [ 'status' => 'great' ], [ 'status' => 'succeeded', 'output' => new stdClass() ] ];
answered(
	static function () use ( &$answers ) {
		return array_shift( $answers );
	}
);

echo "denied\n";
answered( static fn(): array => [ 'status' => 'denied', 'error' => [ 'code' => 'no', 'message' => 'No.' ] ] );

echo "throws: the same exception leaves wait(), the run is cancelled\n";
$marker = marker();
try {
	Run::start( ...request( 'tools', [ 'provenance' => [ 'marker' => $marker ] ] ) )->wait(
		null,
		null,
		static function (): array {
			throw new DomainException( 'mine' );
		}
	);
} catch ( DomainException $e ) {
	var_dump( $e->getMessage(), file_says( $marker, 'eof' ) );
}

echo "a wait that timed out, then another wait\n";
$run   = Run::start( ...request( 'tools' ) );
$calls = 0;
$tool  = static function () use ( &$calls ): array {
	++$calls;
	return [ 'status' => 'failed' ];
};
while ( null === ( $result = $run->wait( null, 0, $tool ) ) ) {
	usleep( 1000 );
}
var_dump( $calls, $result['outcome'] );
?>
--EXPECT--
answers with another request id or tool name
  one wp-codebox/parent-tool-result/v1 host.read succeeded - {"n":1}
  two wp-codebox/parent-tool-result/v1 host.read succeeded - {"n":1}
  three wp-codebox/parent-tool-result/v1 host.read succeeded - {"n":1}
succeeded
no tool function
  one wp-codebox/parent-tool-result/v1 host.read unavailable unavailable null
  two wp-codebox/parent-tool-result/v1 host.read unavailable unavailable null
  three wp-codebox/parent-tool-result/v1 host.read unavailable unavailable null
succeeded
invalid results
  one wp-codebox/parent-tool-result/v1 host.read failed invalid-result null
  two wp-codebox/parent-tool-result/v1 host.read failed invalid-result null
  three wp-codebox/parent-tool-result/v1 host.read failed invalid-result null
succeeded
denied
  one wp-codebox/parent-tool-result/v1 host.read denied no null
  two wp-codebox/parent-tool-result/v1 host.read denied no null
  three wp-codebox/parent-tool-result/v1 host.read denied no null
succeeded
throws: the same exception leaves wait(), the run is cancelled
string(4) "mine"
bool(true)
a wait that timed out, then another wait
int(3)
string(9) "succeeded"
