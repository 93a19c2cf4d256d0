--TEST--
AgentTask converts the input and the result of a task
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\AgentTask;

$result = [
	'run_id'             => 'run_1',
	'outcome'            => 'no_op',
	'summary'            => 'Nothing changed.',
	'changed_files'      => [],
	'completion_outcome' => [ 'status' => 'partial', 'provenance' => [ 'artifactDirectory' => '.' ] ],
	'agent_result'       => [ 'status' => 'completed', 'noOpReason' => 'no_file_changes' ],
	'artifacts'          => [ 'path' => '/b', 'bundle_id' => 'artifact-bundle-sha256-ab', 'manifest_sha256' => 'cd' ],
	'isolation'          => [],
];

$run = AgentTask::answer( [ 'session_id' => 'mine' ], [ 'goal' => 'Fix it' ], $result, [ 'provider' => 'acme' ], '6.9' );
echo json_encode( [ $run['success'], $run['status'], $run['session']['id'], $run['session']['status'], $run['task'], $run['wp'], $run['run_metadata']['provider'] ] ), "\n";
echo json_encode( [ $run['agent_task_run_result']['status'], $run['agent_task_run_result']['no_op'], $run['artifact_result']['status'], isset( $run['isolation'] ) ] ), "\n";
echo json_encode( $run['task_input'], JSON_UNESCAPED_SLASHES ), "\n";
echo json_encode( array_intersect_key( AgentTask::row( $run ), [ 'run_id' => 1, 'artifacts' => 1, 'exit_code' => 1 ] ), JSON_UNESCAPED_SLASHES ), "\n";
echo json_encode( AgentTask::started( [], [ 'goal' => 'Fix it' ], 'run_2', '6.9' )['session'], JSON_UNESCAPED_SLASHES ), "\n";
$many = AgentTask::answer( [], [ 'goal' => 'x' ], [ 'changed_files' => array_fill( 0, 200000, [ 'path' => 'a', 'relativePath' => 'b' ] ) ] + $result, [], '6.9' );
echo count( $many['changed_files'] ), "\n";

echo json_encode( AgentTask::input( [ 'goal' => ' g ', 'allowed_tools' => [ 'a ', 'a', '' ], 'workload' => [] ] ) ), "\n";
echo json_encode( AgentTask::input( [ 'goal' => 'g', 'parent_request' => [ 'schema' => 'x' ] ] ) ), "\n";
caught( static fn() => AgentTask::input( [ 'workload' => [ 'schema' => 'x' ] ] ) );
caught( static fn() => AgentTask::answer( [], [], [ 'run_id' => 'run_1', 'outcome' => 'splendid' ], [], '6.9' ) );
caught( static fn() => AgentTask::answer( [], [], [ 'outcome' => 'no_op' ], [], '6.9' ) );
?>
--EXPECT--
[true,"completed","mine","completed","Fix it","6.9","acme"]
["no_op",{"detected":true,"changed_files_count":0,"reason":"no_file_changes"},"created",false]
{"schema":"wp-codebox/task-input/v1","version":1,"goal":"Fix it","target":[],"allowed_tools":[],"expected_artifacts":[],"structured_artifacts":[],"tool_bridge":[],"parent_tool_bridge":[],"sandbox_tool_policy":[],"policy":[],"context":[]}
{"run_id":"run_1","exit_code":0,"artifacts":{"path":"/b"}}
{"schema":"wp-codebox/sandbox-session/v1","id":"run_2","status":"ready","persistence":"external-orchestrator","run_id":"run_2"}
200000
{"goal":"g","allowed_tools":["a"]}
{"goal":"g","context":{"parent_request":{"schema":"x"}}}
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
