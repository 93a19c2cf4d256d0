--TEST--
A run has the share of its requester: half of the runs, ceilings of its limits, and never more than the operator allows
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.max_runs=7
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\{Extension, Run};

/** Starts a run and prints its share and limits as the supervisor receives them. */
function sent( string $label, array $with ): void {
	Run::start( ...request( 'echo', $with ) )->wait(
		static function ( array $event ) use ( $label ): void {
			$request = $event['data']['start']['request'];
			echo $label, ': ', $request['share']['requester'], ' ', $request['share']['max_runs'], ' of ', $request['max_runs'], ' ', json_encode( $request['share']['spend'] ), ' ', json_encode( array_filter( $request['limits'] ) ), "\n";
		}
	);
}
$by = static fn( mixed $requester ): array => [ 'provenance' => [ 'requester' => $requester ] ];

sent( 'user', $by( [ 'kind' => 'user', 'id' => 5, 'site' => 's' ] ) );
sent( 'operator', $by( [ 'kind' => 'operator', 'id' => 0 ] ) );
sent( 'cron', $by( [ 'kind' => 'none', 'id' => 0 ] ) );
sent( 'user without an id', $by( [ 'kind' => 'user', 'id' => 0 ] ) );
sent( 'no record', $by( 'user-5' ) );
sent( 'one place', [ 'max_runs' => 1 ] );
sent( 'runs of the site', [ 'share' => [ 'runs' => 7 ] ] );
sent( 'more than the site', [ 'max_runs' => 3, 'share' => [ 'runs' => 99 ] ] );
sent( 'caps', [ 'share' => [ 'spend' => [ 'site_microusd' => 9, 'requester_microusd' => 4 ] ] ] );
sent( 'lower ceiling', [ 'share' => [ 'ceilings' => [ 'memory_bytes' => 1 << 29, 'processes' => 4096 ] ] ] );
sent( 'at the ceilings', [ 'limits' => [ 'wall_clock_ms' => 3600000, 'memory_bytes' => 2 << 30, 'disk_bytes' => 2 << 30 ] ] );
sent( 'raised ceiling', [ 'limits' => [ 'memory_bytes' => 16 << 30 ], 'share' => [ 'ceilings' => [ 'memory_bytes' => 64 << 30 ] ] ] );

foreach (
	[
		[ 'limits' => [ 'memory_bytes' => ( 2 << 30 ) + 1 ] ],
		[ 'limits' => [ 'wall_clock_ms' => 3600001 ] ],
		[ 'limits' => [ 'disk_bytes' => 64 << 30 ] ],
		[ 'limits' => [ 'processes' => 65 ], 'share' => [ 'ceilings' => [ 'processes' => 64 ] ] ],
		[ 'limits' => [ 'memory_bytes' => ( 16 << 30 ) + 1 ], 'share' => [ 'ceilings' => [ 'memory_bytes' => 64 << 30 ] ] ],
		[ 'hold' => [ 'ttl_ms' => 1000, 'max_ttl_ms' => 3600001 ] ],
		[ 'share' => [ 'runs' => 0 ] ],
		[ 'share' => [ 'places' => 1 ] ],
		[ 'share' => [ 'spend' => [ 'site_microusd' => -1 ] ] ],
	] as $with
) {
	$e = caught( static fn() => Run::start( ...request( 'echo', $with ) ) );
	echo '  ', $e->getMessage(), ' | ', implode( ' ', $e->hints ), "\n";
}
// A caller cannot choose its own share.
[ $task, $host ] = request( 'echo' );
caught( static fn() => Run::start( [ 'share' => [ 'runs' => 9 ] ] + $task, $host ) );

echo json_encode( Extension::info()['max_limits'] ), ' ', json_encode( Extension::info()['default_ceilings'] ), "\n";
foreach ( [ 'memory_bytes:1073741824', 'memory_bytes', 'memory_bytes:0', 'memory:1', 'memory_bytes:-1' ] as $value ) {
	[ , $output ] = in_child( 'echo json_encode( WPCodebox\Native\Extension::info()["max_limits"] ), " "; caught( static fn() => WPCodebox\Native\Run::validate( ...request( "g", [ "limits" => [ "memory_bytes" => 1 << 31 ] ] ) ) );', [ 'wp_codebox.max_limits' => $value ] );
	echo "$value: ", trim( $output ), "\n";
}
?>
--EXPECT--
user: user-5 3 of 7 [] []
operator: operator 3 of 7 [] []
cron: none 3 of 7 [] []
user without an id: none 3 of 7 [] []
no record: none 3 of 7 [] []
one place: none 1 of 1 [] []
runs of the site: none 7 of 7 [] []
more than the site: none 3 of 3 [] []
caps: none 3 of 7 {"site_microusd":9,"requester_microusd":4} []
lower ceiling: none 3 of 7 [] {"memory_bytes":536870912}
at the ceilings: none 3 of 7 [] {"wall_clock_ms":3600000,"memory_bytes":2147483648,"disk_bytes":2147483648}
raised ceiling: none 3 of 7 [] {"memory_bytes":17179869184}
InvalidInputException wp_codebox_limit_invalid
  limits.memory_bytes is 2147483649, but on this site it may be at most 2147483648 | ask for less, or an administrator can raise the ceiling "Memory (MiB)" in the settings of Codebox
InvalidInputException wp_codebox_limit_invalid
  limits.wall_clock_ms is 3600001, but on this site it may be at most 3600000 | ask for less, or an administrator can raise the ceiling "Duration (seconds)" in the settings of Codebox
InvalidInputException wp_codebox_limit_invalid
  limits.disk_bytes is 68719476736, but on this site it may be at most 2147483648 | ask for less, or an administrator can raise the ceiling "Disk (MiB)" in the settings of Codebox
InvalidInputException wp_codebox_limit_invalid
  limits.processes is 65, but on this site it may be at most 64 | ask for less, or an administrator can raise the ceiling "Processes" in the settings of Codebox
InvalidInputException wp_codebox_limit_invalid
  limits.memory_bytes is 17179869185, but on this site it may be at most 17179869184 | ask for less, or the operator can raise memory_bytes in wp_codebox.max_limits in php.ini
InvalidInputException wp_codebox_limit_invalid
  hold.max_ttl_ms is 3600001, but on this site it may be at most 3600000 | ask for less, or an administrator can raise the ceiling "Duration (seconds)" in the settings of Codebox
InvalidInputException wp_codebox_input_invalid
  share.runs must be a whole number from 1 | 
InvalidInputException wp_codebox_input_invalid
  there is no field share.places; accepted are: runs, ceilings, spend | 
InvalidInputException wp_codebox_input_invalid
  share.spend.site_microusd must be a whole number from 0 | 
InvalidInputException wp_codebox_input_invalid
{"wall_clock_ms":28800000,"processes":null,"memory_bytes":17179869184,"disk_bytes":17179869184,"output_bytes":null,"cpu_milli":null} {"wall_clock_ms":3600000,"processes":null,"memory_bytes":2147483648,"disk_bytes":2147483648,"output_bytes":null,"cpu_milli":null}
memory_bytes:1073741824: {"wall_clock_ms":28800000,"processes":null,"memory_bytes":1073741824,"disk_bytes":17179869184,"output_bytes":null,"cpu_milli":null} InvalidInputException wp_codebox_limit_invalid
memory_bytes: ["memory_bytes"] UnavailableException wp_codebox_config_invalid
memory_bytes:0: ["memory_bytes:0"] UnavailableException wp_codebox_config_invalid
memory:1: ["memory:1"] UnavailableException wp_codebox_config_invalid
memory_bytes:-1: ["memory_bytes:-1"] UnavailableException wp_codebox_config_invalid
