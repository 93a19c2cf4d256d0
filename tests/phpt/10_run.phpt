--TEST--
A run passes its request to the runner and returns ordered events and the result with its outcome
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.state_dir=/srv/state
wp_codebox.share_dir=/srv/share
wp_codebox.launcher=/srv/launch
wp_codebox.php_binary=/srv/php
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Run;

$run = Run::start(
	...request(
		'echo',
		[
			'target'         => [ 'kind' => 'plugin' ],
			'context'        => [],
			'orchestrator'   => [ 'id' => 'echoed-by-php-only' ],
			'staged_files'   => [ [ 'source' => '/srv/one', 'target' => '/workspace/one' ], [ 'source' => '/srv/two', 'target' => '/run/codebox/staged/two' ] ],
			'mounts'        => [ [ 'source' => '/srv/p', 'target' => '/wordpress/wp-content/plugins/p', 'mode' => 'readonly', 'exclude' => [ 'vendor' ], 'metadata' => [ 'k' => 'v' ] ] ],
			'resolved_agent' => [ 'argv' => [ 'agent', "\u{e9}" ], 'success_codes' => [ 0, 1 ], 'env' => [ 'KEY' => 'v' ] ],
			'commands'      => [ [ 'command' => 'wordpress.run-php', 'args' => [ 'code=echo 1;' ] ] ],
			'checks'        => [ 'phpunit --colors' ],
			'limits'        => [ 'wall_clock_ms' => 60_000 ],
			'find_renames'  => true,
			'redact'        => [ 'secret-value' ],
			'provenance'    => [ 'requester' => [ 'id' => 1 ] ],
			'allowed_roots' => [ '/srv' ],
		]
	)
);
var_dump( preg_match( '/^run_[0-9a-f]{32}$/', $run->id() ) );
$events = [];
$result = $run->wait(
	static function ( array $event ) use ( &$events ): void {
		$events[] = $event;
	}
);
$start = $events[0]['data']['start'];
var_dump( $start['request']['run_id'] === $run->id() );
unset( $start['request']['run_id'] );
echo json_encode( $start, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE ), "\n";
unset( $events[0]['data'] );
echo json_encode( $events ), "\n";
echo json_encode( array_diff_key( $result, [ 'run_id' => 1, 'isolation' => 1, 'cost' => 1 ] ) ), "\n";
var_dump( $result['run_id'] === $run->id() );

// A second wait() returns the same result, and cancel() after the end does nothing.
var_dump( $run->wait() === $result );
$run->cancel();
var_dump( $run->wait() === $result );

// Two runs have different ids; without a callback events are dropped; named arguments work.
$other = Run::start( task: request( 'echo' )[0], host: request( 'echo' )[1] );
var_dump( $other->id() !== $run->id(), $other->wait( onEvent: null )['outcome'] );

foreach ( [ 'no_op', 'partial', 'blocked', 'denied', 'failed', 'timed_out', 'cancelled' ] as $outcome ) {
	$result = Run::start( ...request( "outcome $outcome" ) )->wait();
	echo "$outcome ", $result['session_status'], ' ', json_encode( $result['success'] ), ' ', $result['exit_status'], "\n";
}
$large = Run::start( ...request( 'large-result' ) )->wait();
var_dump( strlen( $large['transcript']['text'] ), zombies() );
?>
--EXPECTF--
int(1)
bool(true)
{
    "type": "start",
    "protocol": 5,
    "asked_ns": %d,
    "request": {
        "schema": "wp-codebox/run-request/v1",
        "site": "site-1",
        "mode": "attached",
        "max_runs": 8,
        "share": {
            "requester": "none",
            "max_runs": 4,
            "spend": []
        },
        "paths": {
            "state_dir": "/srv/state",
            "share_dir": "/srv/share",
            "launcher": "/srv/launch",
            "php_binary": "/srv/php",
            "wordpress": "/srv/wordpress",
            "denied": [
                "/srv/wordpress"
            ],
            "allowed_roots": [
                "/srv"
            ],
            "identity": "auto",
            "agents_dir": "/opt/wp-codebox/agents"
        },
        "task": {
            "schema": "wp-codebox/task-input/v1",
            "version": 1,
            "goal": "echo",
            "target": {
                "kind": "plugin"
            },
            "allowed_tools": [],
            "expected_artifacts": [],
            "structured_artifacts": [],
            "staged_files": [
                {
                    "source": "/srv/one",
                    "target": "/workspace/one"
                },
                {
                    "source": "/srv/two",
                    "target": "/run/codebox/staged/two"
                }
            ],
            "tool_bridge": [],
            "parent_tool_bridge": [],
            "sandbox_tool_policy": [],
            "policy": [],
            "context": []
        },
        "mounts": [
            {
                "source": "/srv/p",
                "target": "/wordpress/wp-content/plugins/p",
                "mode": "readonly",
                "exclude": [
                    "vendor"
                ],
                "metadata": {
                    "k": "v"
                }
            }
        ],
        "commands": [
            {
                "command": "wordpress.run-php",
                "args": [
                    "code=echo 1;"
                ]
            }
        ],
        "agent": {
            "kind": "command",
            "argv": [
                "agent",
                "é"
            ],
            "success_codes": [
                0,
                1
            ],
            "env": {
                "KEY": "v"
            }
        },
        "checks": [
            "phpunit --colors"
        ],
        "limits": {
            "wall_clock_ms": 60000,
            "processes": null,
            "memory_bytes": null,
            "disk_bytes": null,
            "output_bytes": null,
            "cpu_milli": null
        },
        "find_renames": true,
        "outer_sandbox": {
            "kind": "none",
            "need": "required"
        },
        "redact": [
            "secret-value"
        ],
        "provenance": {
            "requester": {
                "id": 1
            }
        }
    }
}
[{"id":"evt-1","seq":1,"type":"runtime.observed","timestamp":"2026-01-01T00:00:00.000Z"}]
{"schema":"wp-codebox\/run-result\/v1","outcome":"succeeded","summary":"It succeeded.","changed_files":[],"approvable":true,"checks":[],"completion_outcome":{"status":"succeeded"},"agent_result":null,"transcript":null,"a_later_member":"kept","session_status":"completed","success":true,"exit_status":0}
bool(true)
bool(true)
bool(true)
bool(true)
string(9) "succeeded"
no_op completed true 0
partial completed false 3
blocked failed false 3
denied failed false 126
failed failed false 1
timed_out failed false 124
cancelled failed false 130
int(4194304)
int(0)
