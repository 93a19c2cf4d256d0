--TEST--
Batch and Fanout check the plan, decide which task may start, and aggregate the results
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Batch;
use WPCodebox\Native\Fanout;

$worker = static fn( string $id, array $more = [] ): array => $more + [ 'id' => $id, 'goal' => "Do $id" ];
$read   = static fn( array $workers, array $more = [] ): Fanout => Fanout::read( $more + [ 'workers' => $workers ], 8, 'new' );

echo "invalid plans\n";
foreach ( [ [], [ $worker( 'a' ), $worker( 'a' ) ], [ $worker( '7' ) ], [ 'a' ], [ [ 'id' => 'a' ] ], [ $worker( 'a', [ 'dependsOn' => [ 'a' ] ] ) ] ] as $workers ) {
	caught( static fn() => $read( $workers ) );
}
foreach ( [ 1, 8, 9, 0, -1, '2', 1.5, null ] as $concurrency ) {
	caught( static fn() => $read( [ $worker( 'a' ) ], [ 'concurrency' => $concurrency ] ), var_export( $concurrency, true ) );
}
caught( static fn() => Fanout::read( [ 'workers' => [ $worker( 'a' ) ], 'concurrency' => 2 ], -1, 'new' ), 'most' );

echo "values that cannot be JSON\n";
$loop         = $worker( 'a' );
$loop['self'] = &$loop;
caught( static fn() => $read( [ $loop ] ) );
caught( static fn() => $read( [ $worker( "\xff" ) ] ) );
caught( static fn() => $read( [ $worker( 'a', [ 'context' => [ 'x' => NAN ] ] ) ] ) );
caught( static fn() => $read( [ $worker( 'a', [ 'context' => new ArrayObject() ] ) ] ) );
$text = new class() {
	public function __toString(): string {
		echo "called\n";
		return 'a';
	}
};
caught( static fn() => $read( [ [ 'id' => $text, 'goal' => 'x' ] ] ) );

echo "from the plan to the answer\n";
$limits = [ 'limits' => [ 'processes' => 9 ] ];
$shared = [ 'concurrency' => 2, 'sandbox_session_id' => 'mine', 'orchestrator' => [ 'id' => 'o' ] ] + $limits;
$plan   = $read( [ $worker( 'a', [ 'timeout_seconds' => 5 ] ), $worker( 'b' ), $worker( 'c', [ 'dependsOn' => [ 'a', 'b' ], 'required' => false ] ), $worker( 'd', [ 'dependsOn' => [ 'c' ], 'required' => false ] ) ], $shared );
echo json_encode( [ $plan->concurrency(), $plan->ids(), $plan->task( 'a' ), $plan->task( 'b' )['limits'] ] ), "\n";
$huge = $read( [ $worker( 'a', [ 'timeout_seconds' => PHP_INT_MAX ] ) ] )->task( 'a' );
echo get_debug_type( $huge['limits']['wall_clock_ms'] ), "\n";
echo json_encode( [ $plan->ready( [] ), $plan->ready( [ 'a' ] ), $plan->blocked() ] ), "\n";
$file = static fn( string $target, string $name ): array => [ 'path' => "$target/$name", 'relativePath' => $name, 'status' => 'added', 'type' => 'file', 'mountIndex' => 0, 'patchName' => 'x', 'patchPath' => 'x', 'mountTarget' => $target ];
$end  = static fn( string $id ): array => [ 'run' => [ 'outcome' => 'succeeded' ], 'run_id' => "run_$id", 'artifact_id' => "i-$id", 'artifacts' => [ 'path' => "/b/$id" ] ];
$plan->changed( 'a', [ '/workspace/x' => '/tmp' ], [ $file( '/workspace/x', 'one' ), $file( '/workspace/x', 'same' ) ] );
$plan->changed( 'b', [ '/workspace/y' => '/usr/../tmp' ], [ $file( '/workspace/y', 'two' ) ] );
$plan->changed( 'b', [ '/workspace/y' => '/usr/../tmp' ], [ $file( '/workspace/y', 'same' ) ] );
echo json_encode( $plan->settle( 'a', $end( 'a' ) ), JSON_UNESCAPED_SLASHES ), "\n";
$plan->settle( 'b', $end( 'b' ) );
$plan->settle( 'c', [ 'error' => [ 'code' => 'wp_codebox_run_timeout', 'message' => 'late' ] ] );
$blocked = $plan->blocked();
echo json_encode( $blocked ), "\n";
$plan->settle( 'd', $blocked['d'] );
$answer = $plan->answer();
echo json_encode( array_intersect_key( $answer, array_flip( [ 'success', 'exit_code', 'total', 'completed', 'skipped', 'timed_out', 'orchestrator' ] ) ) ), "\n";
foreach ( $answer['aggregate']['conflicts'] as $conflict ) {
	echo $conflict['type'], ' ', $conflict['severity'], ' ', implode( ',', $conflict['workerIds'] ), ' ', $conflict['path'] ?? '', "\n";
}
echo implode( ' ', array_column( $answer['session']['children'], 'session_id' ) ), "\n";
caught( static fn() => $plan->task( 'nobody' ) );
caught( static fn() => $plan->settle( 'nobody', [] ) );
caught( static fn() => $plan->changed( 'a', [ 'x' => 1 ], [] ) );
caught( static fn() => $plan->changed( 'a', [], [ [ 'path' => 'x' ] ] ) );

echo "a batch\n";
foreach ( [ [], [ 'tasks' => [] ], [ 'tasks' => 'mend' ], [ 'tasks' => array_fill( 0, 201, 'x' ) ], [ 'tasks' => [ 'x' ], 'stop_on_failure' => 'yes' ] ] as $input ) {
	caught( static fn() => Batch::read( $input, 'new' ) );
}
$batch = Batch::read( [ 'tasks' => [ 'mend', 7, [], 'last' ], 'plugin' => 'p', 'stop_on_failure' => true ], 'new' );
echo json_encode( [ $batch->size(), $batch->task( 0 ), $batch->task( 2 ), $batch->stopped() ] ), "\n";
caught( static fn() => $batch->task( 1 ) );
foreach ( [ -1, 4, PHP_INT_MAX, PHP_INT_MIN ] as $index ) {
	caught( static fn() => $batch->task( $index ) );
	caught( static fn() => $batch->settle( $index, [ 'status' => 'completed' ] ) );
}
echo json_encode( [ $batch->settle( 0, [ 'run' => [ 'outcome' => 'no_op' ] ] ), $batch->stopped(), $batch->settle( 1, [] ), $batch->stopped() ] ), "\n";
echo json_encode( $batch->answer(), JSON_UNESCAPED_SLASHES ), "\n";

echo "objects that were not created by read()\n";
foreach ( [ static fn() => new Fanout(), static fn() => ( clone $batch )->size(), static fn() => unserialize( 'O:22:"WPCodebox\\Native\\Batch":0:{}' )->size(), static fn() => unserialize( serialize( $plan ) )->ids() ] as $trick ) {
	try {
		$trick();
		echo "accepted\n";
	} catch ( \Throwable $thrown ) {
		echo $thrown::class, ': ', $thrown->getMessage(), "\n";
	}
}
?>
--EXPECT--
invalid plans
InvalidInputException wp_codebox_fanout_workers_missing
InvalidInputException wp_codebox_fanout_worker_id_duplicate
InvalidInputException wp_codebox_fanout_worker_id_invalid
InvalidInputException wp_codebox_fanout_worker_invalid
InvalidInputException wp_codebox_fanout_worker_goal_missing
InvalidInputException wp_codebox_fanout_worker_dependency_invalid
1: no exception
8: no exception
9: InvalidInputException wp_codebox_fanout_concurrency_invalid
0: InvalidInputException wp_codebox_fanout_concurrency_invalid
-1: InvalidInputException wp_codebox_fanout_concurrency_invalid
'2': InvalidInputException wp_codebox_fanout_concurrency_invalid
1.5: InvalidInputException wp_codebox_fanout_concurrency_invalid
NULL: no exception
most: InvalidInputException wp_codebox_fanout_concurrency_invalid
values that cannot be JSON
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
from the plan to the answer
[2,["a","b","c","d"],{"sandbox_session_id":"mine:a","orchestrator":{"id":"o"},"limits":{"processes":9,"wall_clock_ms":5000},"goal":"Do a"},{"processes":9}]
int
[["a","b"],["b"],[]]
{"worker_id":"a","index":0,"goal":"Do a","required":true,"depends_on":[],"success":true,"status":"completed","artifacts":{"path":"/b/a","namespace":"a"}}
{"d":{"success":false,"status":"skipped","exit_code":1,"error":{"code":"dependency-skipped","message":"The worker depends on c, which was not completed."},"dependencies":["c"]}}
{"success":false,"exit_code":3,"total":4,"completed":2,"skipped":1,"timed_out":1,"orchestrator":{"id":"o"}}
failed-worker warning c 
failed-worker-dependency warning d 
duplicate-final-artifact-path error a,b /workspace/x/same
mine:a mine:b mine:c mine:d
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
a batch
InvalidInputException wp_codebox_tasks_missing
InvalidInputException wp_codebox_tasks_missing
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
[4,{"plugin":"p","goal":"mend","sandbox_session_id":"new:0"},{"plugin":"p","sandbox_session_id":"new:2"},null]
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
[{"index":0,"task":"mend","success":true,"status":"completed"},null,{"index":1,"task":"","success":false,"status":"failed","task_input":{"schema":"wp-codebox\/task-input\/v1","version":1,"goal":"","target":[],"allowed_tools":[],"expected_artifacts":[],"structured_artifacts":[],"tool_bridge":[],"parent_tool_bridge":[],"sandbox_tool_policy":[],"policy":[],"context":[]}},{"success":false,"status":"skipped","exit_code":1,"error":{"code":"batch-stopped","message":"An earlier task did not succeed, and the batch stops on failure."}}]
{"success":false,"schema":"wp-codebox/agent-task-batch/v1","exit_code":3,"execution":"sequential-isolated-sandboxes","session":{"schema":"wp-codebox/sandbox-session/v1","id":"new","status":"completed","persistence":"external-orchestrator"},"tasks":["mend","","","last"],"task_inputs":[{"schema":"wp-codebox/task-input/v1","version":1,"goal":"mend","target":[],"allowed_tools":[],"expected_artifacts":[],"structured_artifacts":[],"tool_bridge":[],"parent_tool_bridge":[],"sandbox_tool_policy":[],"policy":[],"context":[]},{"schema":"wp-codebox/task-input/v1","version":1,"goal":"","target":[],"allowed_tools":[],"expected_artifacts":[],"structured_artifacts":[],"tool_bridge":[],"parent_tool_bridge":[],"sandbox_tool_policy":[],"policy":[],"context":[]},{"schema":"wp-codebox/task-input/v1","version":1,"goal":"","target":[],"allowed_tools":[],"expected_artifacts":[],"structured_artifacts":[],"tool_bridge":[],"parent_tool_bridge":[],"sandbox_tool_policy":[],"policy":[],"context":[]},{"schema":"wp-codebox/task-input/v1","version":1,"goal":"last","target":[],"allowed_tools":[],"expected_artifacts":[],"structured_artifacts":[],"tool_bridge":[],"parent_tool_bridge":[],"sandbox_tool_policy":[],"policy":[],"context":[]}],"total":2,"completed":1,"failed":1,"skipped":0,"cancelled":0,"timed_out":0}
objects that were not created by read()
Error: Call to private WPCodebox\Native\Fanout::__construct() from global scope
Error: Trying to clone an uncloneable object of class WPCodebox\Native\Batch
Exception: Unserialization of 'WPCodebox\Native\Batch' is not allowed
Exception: Serialization of 'WPCodebox\Native\Fanout' is not allowed
