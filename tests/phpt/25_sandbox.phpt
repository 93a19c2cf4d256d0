--TEST--
A request to a held sandbox is one line over its socket and returns replies, or a refusal with its code
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.state_dir={PWD}/state-25
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Sandbox;

// Longer than a Unix socket address may be.
$id  = 'run_held' . str_repeat( '0', 50 );
$run = __DIR__ . "/state-25/sites/site-1/runs/$id";
mkdir( $run, 0700, true );
chdir( $run );
$sandbox = proc_open( [ __DIR__ . '/fixtures/fake-sandbox', 'control.sock' ], [ 1 => [ 'pipe', 'w' ] ], $pipes, $run );
echo fgets( $pipes[1] );
chdir( '/' );

$answer = Sandbox::ask( 'site-1', $id, [ 'type' => 'status' ] );
echo $answer['schema'], ' ', json_encode( $answer['asked'] ), "\n";
$answer = Sandbox::ask( 'site-1', $id, [ 'type' => 'status' ], [ 'actor' => 'cli:me' ] );
echo $answer['asked']['actor'], "\n";

echo json_encode( Sandbox::ask( 'site-1', $id, [ 'type' => 'exec', 'argv' => [ 'cat', '-' ], 'env' => [] ], [ 'stdin' => 'words' ] ) ), "\n";
// More than both socket buffers hold: a client that sends everything before it reads would block for ever.
$words = str_repeat( "fifteen letters\n", 1 << 18 );
$options = [ 'stdin' => $words, 'timeout_ms' => 60_000 ];
$end      = Sandbox::ask( 'site-1', $id, [ 'type' => 'exec', 'argv' => [ 'tee' ] ], $options );
var_dump( $end['stdout'] === $words, isset( $end['output_truncated'] ) );
$end = Sandbox::ask( 'site-1', $id, [ 'type' => 'exec', 'argv' => [ 'head' ] ], $options );
var_dump( $end['code'], strlen( $end['stdout'] ) );
$heard = [];
$end   = Sandbox::ask( 'site-1', $id, [ 'type' => 'exec', 'argv' => [ 'ls' ] ], [], static function ( array $piece ) use ( &$heard ): void {
	$heard[] = $piece;
} );
echo json_encode( $heard ), ' ', $end['code'], ' ', var_export( $end['stdout'], true ), "\n";
try {
	Sandbox::ask( 'site-1', $id, [ 'type' => 'exec', 'argv' => [ 'ls' ] ], [], static fn() => throw new LogicException( 'enough' ) );
} catch ( LogicException $e ) {
	echo get_class( $e ), ' ', $e->getMessage(), "\n";
}

caught( static fn() => Sandbox::ask( 'site-1', $id, [ 'type' => 'reset' ] ), 'refused there' );
caught( static fn() => Sandbox::ask( 'site-1', $id, [ 'type' => 'trace' ] ), 'nonsense' );
caught( static fn() => Sandbox::ask( 'site-1', $id, [ 'type' => 'close' ] ), 'gone' );
$began = microtime( true );
caught( static fn() => Sandbox::ask( 'site-1', $id, [ 'type' => 'snapshots' ], [ 'timeout_ms' => 300 ] ), 'late' );
var_dump( microtime( true ) - $began < 30 );
proc_terminate( $sandbox, 9 );
proc_close( $sandbox );
caught( static fn() => Sandbox::ask( 'site-1', $id, [ 'type' => 'status' ] ), 'dead' );
caught( static fn() => Sandbox::ask( 'site-1', 'run_ended_succeeded', [ 'type' => 'status' ] ), 'ended' );
caught( static fn() => Sandbox::ask( 'site-1', 'run_00', [ 'type' => 'status' ] ), 'unknown' );

foreach ( [ [], [ 'type' => 'boil' ], [ 'type' => 'exec' ], [ 'type' => 'extend_ttl', 'ttl_ms' => 'secret' ] ] as $request ) {
	$e = caught( static fn() => Sandbox::ask( 'site-1', $id, $request ) );
	echo str_contains( $e->getMessage(), 'secret' ) ? "LEAK\n" : '';
}
foreach ( [ [ 'actor' => "a\nb" ], [ 'actor' => ' ' ], [ 'timeout_ms' => -1 ], [ 'who' => 'x' ] ] as $options ) {
	caught( static fn() => Sandbox::ask( 'site-1', $id, [ 'type' => 'status' ], $options ) );
}
?>
--CLEAN--
<?php
$state = __DIR__ . '/state-25';
if ( is_dir( $state ) ) {
	$files = new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $state, FilesystemIterator::SKIP_DOTS ), RecursiveIteratorIterator::CHILD_FIRST );
	foreach ( $files as $file ) {
		$file->isDir() ? rmdir( (string) $file ) : unlink( (string) $file );
	}
	rmdir( $state );
}
?>
--EXPECT--
listening
wp-codebox/sandbox/v1 {"live":1,"actor":"php","request":{"type":"status"}}
cli:me
{"code":3,"end":"exited","duration_ms":5,"execution_id":"exec-7","stdout":"cat - read words\n","stderr":"\ufffd\n"}
bool(true)
bool(false)
int(0)
int(65536)
[{"stream":"stdout","text":"ls read \n","base64":null},{"stream":"stderr","text":null,"base64":"\/wo="}] 3 ''
LogicException enough
refused there: ConflictException wp_codebox_sandbox_in_use
nonsense: UnavailableException wp_codebox_runner_unavailable
gone: UnavailableException wp_codebox_runner_unavailable
late: LimitException wp_codebox_run_timeout
bool(true)
dead: ConflictException wp_codebox_sandbox_not_held
ended: ConflictException wp_codebox_sandbox_not_held
unknown: NotFoundException wp_codebox_run_not_found
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
