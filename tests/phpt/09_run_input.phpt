--TEST--
A bad request is refused with code and field before a runner starts, and the error quotes no value
--INI--
wp_codebox.runner=/nonexistent/runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

const SECRET = 'hunter2-do-not-print';
const SECRETS = [ 'network' => [ 'allowHosts' => [ 'api.example.org' ] ], 'filesystem' => 'readwrite-mounts', 'commands' => [], 'secrets' => 'connector-scoped', 'approvals' => 'never' ];
const MODEL = [ 'provider' => 'example', 'model' => 'm', 'api' => 'openai-chat', 'base_url' => 'https://api.example.org/v1' ];
$cases = [
	'no goal'            => [ 'goal' => null ],
	'blank goal'         => [ 'goal' => " \n\t" ],
	'goal is no text'    => [ 'goal' => [ SECRET ] ],
	'long goal'          => [ 'goal' => str_repeat( 'x', 65_537 ) ],
	'code'               => [ 'code' => null ],
	'code_file'          => [ 'code_file' => '/x.php' ],
	'unknown field'      => [ 'frobnicate' => 's' ],
	'site'               => [ 'site' => '../up' ],
	'site missing'       => [ 'site' => null ],
	'wordpress'          => [ 'wordpress' => 'relative' ],
	'wordpress dots'     => [ 'wordpress' => '/srv/../etc' ],
	'wordpress missing'  => [ 'wordpress' => null ],
	'denied'             => [ 'denied' => [ '/a', 'b' ] ],
	'denied no list'     => [ 'denied' => '/a' ],
	'code_roots'         => [ 'code_roots' => [ 'x' ] ],
	'allowed_roots'      => [ 'allowed_roots' => [ 'x' ] ],
	'policy'             => [ 'policy' => [ 'network' => 'deny' ] ],
	'policy unenforced'  => [ 'policy' => [ 'network' => 'allow', 'filesystem' => 'sandbox', 'commands' => [], 'secrets' => 'none', 'approvals' => 'never' ] ],
	'secrets'            => [ 'secrets' => [ [ 'env' => 'A_KEY', 'value' => SECRET, 'hosts' => [ 'api.example.org' ] ] ] ],
	'secret no row'      => [ 'secrets' => [ SECRET ] ],
	'secret field'       => [ 'secrets' => [ [ 'env' => 'A_KEY', 'value' => SECRET, 'host' => 'api.example.org' ] ] ],
	'secret value'       => [ 'policy' => SECRETS, 'secrets' => [ [ 'env' => 'A_KEY', 'value' => "two\nlines" . SECRET, 'hosts' => [ 'api.example.org' ] ] ] ],
	'secret name'        => [ 'policy' => SECRETS, 'secrets' => [ [ 'env' => SECRET, 'value' => SECRET, 'hosts' => [ 'api.example.org' ] ] ] ],
	'secret host'        => [ 'policy' => SECRETS, 'secrets' => [ [ 'env' => 'A_KEY', 'value' => SECRET, 'hosts' => [ 'other.example.org' ] ] ] ],
	'secret no host'     => [ 'policy' => SECRETS, 'secrets' => [ [ 'env' => 'A_KEY', 'value' => SECRET ] ] ],
	'mount no row'       => [ 'mounts' => [ SECRET ] ],
	'mount field'        => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/workspace/a', 'type' => 'x' ] ] ],
	'mount source'       => [ 'mounts' => [ [ 'source' => 'a', 'target' => '/workspace/a' ] ] ],
	'mount no source'    => [ 'mounts' => [ [ 'target' => '/workspace/a' ] ] ],
	'mount mode'         => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/workspace/a', 'mode' => SECRET ] ] ],
	'mount git'          => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/workspace/a', 'git' => SECRET ] ] ],
	'mount history'      => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/workspace/a', 'git' => 'history' ] ] ],
	'mount target'       => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/etc/a' ] ] ],
	'mount dots'         => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/workspace/../a' ] ] ],
	'mount overlap'      => [ 'mounts' => [ [ 'source' => '/a', 'target' => '/workspace/a' ], [ 'source' => '/b', 'target' => '/workspace/a/b' ] ] ],
	'too many mounts'    => [ 'mounts' => array_fill( 0, 257, [ 'source' => '/a', 'target' => '/workspace/a' ] ) ],
	'staged target'      => [ 'staged_files' => [ [ 'source' => '/a', 'target' => '/wordpress/x' ] ] ],
	'staged source'      => [ 'staged_files' => [ [ 'source' => 'a', 'target' => '/workspace/x' ] ] ],
	'unknown command'    => [ 'commands' => [ [ 'command' => 'rm' ] ] ],
	'denied command'     => [ 'policy' => [ 'network' => 'deny', 'filesystem' => 'readwrite-mounts', 'commands' => [], 'secrets' => 'none', 'approvals' => 'never' ], 'commands' => [ [ 'command' => 'wordpress.run-php' ] ] ],
	'command argument'   => [ 'commands' => [ [ 'command' => 'wordpress.run-php', 'args' => [ 'nonsense=1' ] ] ] ],
	'no argv'            => [ 'resolved_agent' => [] ],
	'empty program'      => [ 'resolved_agent' => [ 'argv' => [ ' ' ] ] ],
	'argv NUL'           => [ 'resolved_agent' => [ 'argv' => [ 'a', SECRET . "\0" ] ] ],
	'success code'       => [ 'resolved_agent' => [ 'argv' => [ 'a' ], 'success_codes' => [ 0, 256 ] ] ],
	'env name'           => [ 'resolved_agent' => [ 'argv' => [ 'a' ], 'env' => [ 'LD_PRELOAD' => SECRET ] ] ],
	'env value'          => [ 'resolved_agent' => [ 'argv' => [ 'a' ], 'env' => [ 'KEY' => [ SECRET ] ] ] ],
	'agent kind'         => [ 'resolved_agent' => [ 'kind' => SECRET ] ],
	'agent budget'       => [ 'resolved_agent' => [ 'kind' => 'model', 'budget' => [ 'turns' => SECRET ] ] ],
	'agent budget field' => [ 'resolved_agent' => [ 'kind' => 'model', 'budget' => [ 'time' => 1 ] ] ],
	'agent instructions' => [ 'resolved_agent' => [ 'kind' => 'model', 'instructions' => str_repeat( 'x', 65_537 ) ] ],
	'agent argv too'     => [ 'resolved_agent' => [ 'kind' => 'model', 'argv' => [ 'php' ] ] ],
	'ability name'       => [ 'resolved_agent' => [ 'kind' => 'ability', 'ability' => 'No/Name' ] ],
	'ability missing'    => [ 'resolved_agent' => [ 'kind' => 'ability' ] ],
	'ability input'      => [ 'resolved_agent' => [ 'kind' => 'ability', 'ability' => 'a/b', 'input' => SECRET ] ],
	'model api'          => [ 'resolved_model' => [ 'api' => SECRET ] + MODEL ],
	'model no address'   => [ 'resolved_model' => [ 'base_url' => '' ] + MODEL ],
	'model field'        => [ 'resolved_model' => [ 'key' => SECRET ] + MODEL ],
	'model price'        => [ 'resolved_model' => [ 'prices' => [ 'input' => 0.5 ] ] + MODEL ],
	'model private'      => [ 'resolved_model' => [ 'base_url' => 'https://127.0.0.1/v1' ] + MODEL ],
	'model not public'   => [ 'resolved_model' => [ 'base_url' => 'http://localhost:8080/v1' ] + MODEL ],
	'private is no bool' => [ 'resolved_model' => [ 'private' => 'yes' ] + MODEL ],
	'model missing'      => [ 'resolved_agent' => [ 'kind' => 'model' ] ],
	'budget of nothing'  => [ 'resolved_agent' => [ 'kind' => 'model', 'budget' => [ 'turns' => 0 ] ], 'resolved_model' => MODEL ],
	'budget no prices'   => [ 'resolved_agent' => [ 'kind' => 'model', 'budget' => [ 'cost_microusd' => 5 ] ], 'resolved_model' => MODEL ],
	'model plain http'   => [ 'resolved_model' => [ 'base_url' => 'http://api.example.org/v1', 'secret' => 'KEY' ] + MODEL ],
	'hold no time'       => [ 'hold' => [ 'idle_ms' => 5 ] ],
	'hold max'           => [ 'hold' => [ 'ttl_ms' => 5, 'max_ttl_ms' => 4 ] ],
	'tool policy'        => [ 'sandbox_tool_policy' => [ 'schema' => SECRET, 'version' => 1, 'tools' => [] ] ],
	'tool policy row'    => [ 'sandbox_tool_policy' => [ 'schema' => 'wp-codebox/sandbox-tool-policy/v1', 'version' => 1, 'tools' => [ [ 'id' => SECRET ] ] ] ],
	'parent tool'        => [ 'parent_tools' => [ 'tools' => [ [ 'id' => 'a.b' ] ] ] ],
	'parent tool field'  => [ 'parent_tools' => [ 'tools' => [], 'command' => [ SECRET ] ] ],
	'component source'   => [ 'components' => [ [ 'slug' => 'a', 'source' => 'a' ] ] ],
	'component load'     => [ 'components' => [ [ 'slug' => 'a', 'source' => '/a', 'load_as' => SECRET ] ] ],
	'component probe'    => [ 'components' => [ [ 'slug' => 'a', 'source' => '/a', 'readiness_probe' => [ 'type' => 'x', 'name' => 'y' ] ] ] ],
	'no agent'           => [ 'resolved_agent' => null ],
	'blank check'        => [ 'checks' => [ 'true', ' ' ] ],
	'check quotes'       => [ 'checks' => [ "php 'open" ] ],
	'limit range'        => [ 'limits' => [ 'processes' => 3 ] ],
	'limit type'         => [ 'limits' => [ 'memory_bytes' => SECRET ] ],
	'limit float'        => [ 'limits' => [ 'wall_clock_ms' => 1000.5 ] ],
	'limit unknown'      => [ 'limits' => [ 'cpu' => 1 ] ],
	'find_renames'       => [ 'find_renames' => 'yes' ],
	'follow-up no text'  => [ 'follow_up_of' => SECRET ],
	'follow-up field'    => [ 'follow_up_of' => [ 'artifact_id' => 'a', 'site' => SECRET ] ],
	'follow-up nothing'  => [ 'follow_up_of' => [] ],
	'follow-up run id'   => [ 'follow_up_of' => [ 'run_id' => SECRET ] ],
	'follow-up line'     => [ 'follow_up_of' => [ 'artifact_id' => 'a', 'comments' => [ [ 'path' => SECRET, 'line' => 0, 'body' => SECRET ] ] ] ],
	'follow-up body'     => [ 'follow_up_of' => [ 'artifact_id' => 'a', 'comments' => [ [ 'body' => str_repeat( SECRET, 1000 ) ] ] ] ],
	'placement'          => [ 'placement' => SECRET ],
	'redact'             => [ 'redact' => [ [ SECRET ] ] ],
	'provenance'         => [ 'provenance' => SECRET ],
	'not UTF-8'          => [ 'provenance' => [ 'k' => "\xff" ] ],
];
foreach ( $cases as $label => $with ) {
	$e = caught( static fn() => Run::start( ...request( 'g', $with ) ), $label );
	if ( isset( $e->data['field'] ) ) {
		echo '  ', $e->data['field'], "\n";
	}
	if ( null === $e || str_contains( $e->getMessage() . json_encode( $e->data ), SECRET ) ) {
		echo "  LEAK\n";
	}
}
caught( static fn() => Run::start( [ 'a', 'list' ], [] ), 'list' );

// Fields of the host are refused in the task, and fields of the operator are refused in the host argument.
foreach ( [ [ 'site', 0 ], [ 'allowed_roots', 0 ], [ 'secrets', 0 ], [ 'staged_files', 0 ], [ 'outer_sandbox', 0 ], [ 'outer_sandbox', 1 ], [ 'workflow', 1 ] ] as [ $field, $argument ] ) {
	$arguments                        = request( 'g' );
	$arguments[ $argument ][ $field ] = [ 'x' ];
	$e                                = caught( static fn() => Run::start( ...$arguments ), "$field in argument $argument" );
	echo '  ', $e->data['field'], "\n";
}

// Each issue is reported with its field.
$e = caught( static fn() => Run::start( ...request( 'g', [ 'checks' => [ ' ' ], 'limits' => [ 'cpu' => 1 ] ] ) ), 'two issues' );
echo '  ', implode( ' ', array_column( $e->data['issues'], 'field' ) ), "\n";

// Positive control: a request without a fault reaches the supervisor.
caught( static fn() => Run::start( ...request( 'g' ) ), 'fine' );
caught( static fn() => Run::start( ...request( 'g', json_decode( '{"limits": {"wall_clock_ms": 60000.0}, "max_runs": 2.0}', true ) ) ), 'fine float' );
$secret = [ 'env' => 'A_KEY', 'value' => SECRET, 'hosts' => [ 'api.example.org' ] ];
caught( static fn() => Run::start( ...request( 'g', [ 'policy' => SECRETS, 'secrets' => [ $secret ] ] ) ), 'fine secret' );
caught( static fn() => Run::start( ...request( 'g', [ 'resolved_model' => [ 'base_url' => 'http://localhost:8080/v1', 'private' => true ] + MODEL ] ) ), 'fine private' );
$tool = [ 'id' => 'workspace.read', 'runtime_tool_id' => 'workspace_read', 'execution_location' => 'sandbox', 'transport_visibility' => 'sandbox', 'allowed' => true, 'runtime' => [ 'environment' => 'runtime_local', 'capability_scope' => 'runtime_local' ], 'metadata' => [] ];
caught(
	static fn() => Run::start(
		...request(
			'g',
			[
				'resolved_agent'        => [ 'kind' => 'model', 'budget' => [ 'turns' => 3, 'cost_microusd' => 5 ], 'instructions' => 'Be brief.' ],
				'resolved_model'        => MODEL + [ 'context_tokens' => 8192, 'prices' => [ 'input' => 1, 'output' => 2 ] ],
				'sandbox_tool_policy'  => [ 'schema' => 'wp-codebox/sandbox-tool-policy/v1', 'version' => 1, 'tools' => [ $tool ], 'metadata' => [] ],
				'parent_tools' => [ 'tools' => [ [ 'id' => 'host.read', 'description' => 'Reads.', 'input_schema' => [ 'type' => 'object' ] ] ] ],
				'components'   => [ [ 'slug' => 'a', 'source' => '/a', 'readiness_probe' => [ 'type' => 'ability', 'name' => 'a/b' ] ] ],
			]
		)
	),
	'fine model'
);
caught( static fn() => Run::start( ...request( 'g', [ 'resolved_agent' => [ 'kind' => 'ability', 'ability' => 'a/b', 'input' => [] ] ] ) ), 'fine ability' );
caught( static fn() => Run::start( ...request( 'g', [ 'follow_up_of' => [ 'artifact_id' => 'a', 'comments' => [ [ 'path' => 'a.php', 'line' => 1, 'body' => 'Rename it.' ], [ 'body' => 'Add a test.' ] ] ] ] ) ), 'fine follow-up' );

// validate() applies the same checks, except that mounts and agent may be missing, and starts no supervisor.
var_dump( Run::validate( ...request( 'g' ) ) );
var_dump( Run::validate( ...request( 'g', [ 'resolved_agent' => null, 'mounts' => null ] ) ) );
caught( static fn() => Run::validate( ...request( '' ) ), 'validate' );
caught( static fn() => Run::validate( ...request( 'g', [ 'code' => 1 ] ) ), 'validate' );

// Command lines.
echo json_encode( Run::splitCommand( "php 'a b' \"c\" d\\ e '\$HOME' *" ) ), "\n";
echo json_encode( Run::splitCommand( '' ) ), "\n";
caught( static fn() => Run::splitCommand( "a 'b" ), 'split' );
caught( static fn() => Run::splitCommand( "a \$HOME" ), 'split' );
echo json_encode( Run::stageCommands( [ 'php ' . __FILE__ . ' x', 'phpcs .', __FILE__, '/usr/bin/php a' ] )['lines'] ), "\n";
echo json_encode( array_column( Run::stageCommands( [ 'php ' . __FILE__ ] )['files'], 'source' ) === [ realpath( __FILE__ ) ] ), "\n";
caught( static fn() => Run::stageCommands( [ 'a; b' ] ), 'stage' );
caught( static fn() => Run::splitCommand( "\xff" ), 'split' );
?>
--EXPECT--
no goal: InvalidInputException wp_codebox_task_missing
blank goal: InvalidInputException wp_codebox_task_missing
goal is no text: InvalidInputException wp_codebox_input_invalid
  goal
long goal: InvalidInputException wp_codebox_input_invalid
  goal
code: InvalidInputException wp_codebox_raw_code_forbidden
  code
code_file: InvalidInputException wp_codebox_raw_code_forbidden
  code_file
unknown field: InvalidInputException wp_codebox_input_invalid
  frobnicate
site: InvalidInputException wp_codebox_input_invalid
  site
site missing: InvalidInputException wp_codebox_input_invalid
  site
wordpress: InvalidInputException wp_codebox_input_invalid
  wordpress
wordpress dots: InvalidInputException wp_codebox_input_invalid
  wordpress
wordpress missing: InvalidInputException wp_codebox_input_invalid
  wordpress
denied: InvalidInputException wp_codebox_input_invalid
  denied[1]
denied no list: InvalidInputException wp_codebox_input_invalid
  denied
code_roots: InvalidInputException wp_codebox_input_invalid
  code_roots[0]
allowed_roots: InvalidInputException wp_codebox_input_invalid
  allowed_roots[0]
policy: InvalidInputException runtime-policy-invalid
policy unenforced: DeniedException wp_codebox_policy_unenforceable
secrets: DeniedException wp_codebox_forbidden
secret no row: InvalidInputException wp_codebox_secret_invalid
  secrets[0]
secret field: InvalidInputException wp_codebox_secret_invalid
  secrets[0].host
secret value: InvalidInputException wp_codebox_secret_invalid
secret name: InvalidInputException wp_codebox_secret_invalid
secret host: InvalidInputException wp_codebox_secret_invalid
secret no host: InvalidInputException wp_codebox_secret_invalid
mount no row: InvalidInputException wp_codebox_mount_invalid
  mounts[0]
mount field: InvalidInputException wp_codebox_mount_invalid
  mounts[0].type
mount source: InvalidInputException wp_codebox_mount_source_invalid
mount no source: InvalidInputException wp_codebox_mount_invalid
  mounts[0].source
mount mode: InvalidInputException wp_codebox_mount_invalid
  mounts[0].mode
mount git: InvalidInputException wp_codebox_mount_invalid
  mounts[0].git
mount history: InvalidInputException wp_codebox_git_unavailable
  mounts[0].git
mount target: InvalidInputException wp_codebox_mount_target_invalid
mount dots: InvalidInputException wp_codebox_mount_target_invalid
mount overlap: InvalidInputException wp_codebox_mount_target_overlap
too many mounts: InvalidInputException wp_codebox_input_invalid
  mounts
staged target: InvalidInputException wp_codebox_mount_target_invalid
staged source: InvalidInputException wp_codebox_mount_invalid
  staged_files[0].source
unknown command: InvalidInputException wp_codebox_command_unknown
denied command: DeniedException runtime-command-disallowed
command argument: InvalidInputException wp_codebox_input_invalid
no argv: InvalidInputException wp_codebox_input_invalid
  resolved_agent.argv
empty program: InvalidInputException wp_codebox_input_invalid
  resolved_agent.argv
argv NUL: InvalidInputException wp_codebox_input_invalid
  resolved_agent.argv
success code: InvalidInputException wp_codebox_input_invalid
  resolved_agent.success_codes[1]
env name: InvalidInputException wp_codebox_input_invalid
env value: InvalidInputException wp_codebox_input_invalid
  resolved_agent.env.KEY
agent kind: InvalidInputException wp_codebox_input_invalid
  resolved_agent.kind
agent budget: InvalidInputException wp_codebox_budget_invalid
  resolved_agent.budget.turns
agent budget field: InvalidInputException wp_codebox_budget_invalid
  resolved_agent.budget.time
agent instructions: InvalidInputException wp_codebox_input_invalid
  resolved_agent.instructions
agent argv too: InvalidInputException wp_codebox_input_invalid
  resolved_agent.argv
ability name: InvalidInputException wp_codebox_runtime_task_request_invalid
  resolved_agent.ability
ability missing: InvalidInputException wp_codebox_runtime_task_request_invalid
  resolved_agent.ability
ability input: InvalidInputException wp_codebox_runtime_task_request_invalid
  resolved_agent.input
model api: InvalidInputException wp_codebox_model_invalid
  resolved_model.api
model no address: InvalidInputException wp_codebox_model_invalid
  resolved_model.base_url
model field: InvalidInputException wp_codebox_model_invalid
  resolved_model.key
model price: InvalidInputException wp_codebox_model_invalid
  resolved_model.prices.input
model private: InvalidInputException wp_codebox_model_invalid
model not public: InvalidInputException wp_codebox_model_invalid
private is no bool: InvalidInputException wp_codebox_model_invalid
  resolved_model.private
model missing: InvalidInputException wp_codebox_model_missing
budget of nothing: InvalidInputException wp_codebox_budget_invalid
budget no prices: InvalidInputException wp_codebox_budget_invalid
model plain http: InvalidInputException wp_codebox_model_invalid
hold no time: InvalidInputException wp_codebox_input_invalid
  hold.ttl_ms
hold max: InvalidInputException wp_codebox_input_invalid
  hold.max_ttl_ms
tool policy: InvalidInputException wp_codebox_sandbox_tool_policy_invalid
  sandbox_tool_policy
tool policy row: InvalidInputException wp_codebox_sandbox_tool_policy_invalid
  sandbox_tool_policy
parent tool: InvalidInputException wp_codebox_sandbox_tool_policy_invalid
  parent_tools.tools[0].description
parent tool field: InvalidInputException wp_codebox_sandbox_tool_policy_invalid
  parent_tools.command
component source: InvalidInputException wp_codebox_input_invalid
  components[0].source
component load: InvalidInputException wp_codebox_input_invalid
  components[0].load_as
component probe: InvalidInputException wp_codebox_input_invalid
  components[0].readiness_probe.type
no agent: InvalidInputException wp_codebox_agent_missing
blank check: InvalidInputException wp_codebox_input_invalid
  checks[1]
check quotes: InvalidInputException wp_codebox_input_invalid
  checks[0]
limit range: InvalidInputException wp_codebox_limit_invalid
  limits.processes
limit type: InvalidInputException wp_codebox_limit_invalid
  limits.memory_bytes
limit float: InvalidInputException wp_codebox_limit_invalid
  limits.wall_clock_ms
limit unknown: InvalidInputException wp_codebox_limit_invalid
  limits.cpu
find_renames: InvalidInputException wp_codebox_input_invalid
  find_renames
follow-up no text: InvalidInputException wp_codebox_input_invalid
  follow_up_of
follow-up field: InvalidInputException wp_codebox_input_invalid
  follow_up_of.site
follow-up nothing: InvalidInputException wp_codebox_artifact_id_missing
  follow_up_of.artifact_id
follow-up run id: InvalidInputException wp_codebox_input_invalid
  follow_up_of.run_id
follow-up line: InvalidInputException wp_codebox_input_invalid
  follow_up_of.comments[0].line
follow-up body: InvalidInputException wp_codebox_input_invalid
  follow_up_of.comments[0].body
placement: InvalidInputException wp_codebox_input_invalid
  placement
redact: InvalidInputException wp_codebox_input_invalid
  redact[0]
provenance: InvalidInputException wp_codebox_input_invalid
  provenance
not UTF-8: InvalidInputException wp_codebox_input_invalid
list: InvalidInputException wp_codebox_input_invalid
site in argument 0: InvalidInputException wp_codebox_input_invalid
  site
allowed_roots in argument 0: InvalidInputException wp_codebox_input_invalid
  allowed_roots
secrets in argument 0: InvalidInputException wp_codebox_input_invalid
  secrets
staged_files in argument 0: InvalidInputException wp_codebox_input_invalid
  staged_files
outer_sandbox in argument 0: InvalidInputException wp_codebox_input_invalid
  outer_sandbox
outer_sandbox in argument 1: InvalidInputException wp_codebox_input_invalid
  outer_sandbox
workflow in argument 1: InvalidInputException wp_codebox_input_invalid
  workflow
two issues: InvalidInputException wp_codebox_input_invalid
  checks[0] limits.cpu
fine: UnavailableException wp_codebox_runner_unavailable
fine float: UnavailableException wp_codebox_runner_unavailable
fine secret: UnavailableException wp_codebox_runner_unavailable
fine private: UnavailableException wp_codebox_runner_unavailable
fine model: UnavailableException wp_codebox_runner_unavailable
fine ability: UnavailableException wp_codebox_runner_unavailable
fine follow-up: UnavailableException wp_codebox_runner_unavailable
NULL
NULL
validate: InvalidInputException wp_codebox_task_missing
validate: InvalidInputException wp_codebox_raw_code_forbidden
["php","a b","c","d e","$HOME","*"]
[]
split: InvalidInputException wp_codebox_input_invalid
split: InvalidInputException wp_codebox_input_invalid
["php \/run\/codebox\/staged\/0-09_run_input.php x","phpcs .","\/run\/codebox\/staged\/0-09_run_input.php","\/usr\/bin\/php a"]
true
stage: InvalidInputException wp_codebox_input_invalid
split: InvalidInputException wp_codebox_input_invalid
