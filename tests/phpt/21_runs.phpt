--TEST--
Runs calls the runner with the expected arguments, and refusals are exceptions with their codes
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.state_dir=/srv/state
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Runs;

$said = static function ( array $answer ): void {
	echo $answer['schema'], ' <- ', implode( ' ', $answer['facts']['argv'] ), "\n";
};
$said( Runs::list( 'site-1' ) );
$said( Runs::list( 'site-1', [ 'status' => 'running', 'limit' => 200, 'offset' => 400 ] ) );
$said( Runs::list( 'site-1', [ 'requester' => 7, 'prefix' => 'run_0f' ] ) );
$said( Runs::get( 'site-1', 'run_0f' ) );
$said( Runs::events( 'site-1', 'run_0f' ) );
$said( Runs::events( 'site-1', 'run_0f', 17, 1000 ) );
$said( Runs::cancel( 'site-1', 'run_0f' ) );
var_dump( Runs::get( 'site-1', 'run_0f' )['facts']['env'] );

echo "outcomes\n";
foreach ( [ 'succeeded', 'partial', 'timed_out', 'cancelled', 'error', 'nothing' ] as $outcome ) {
	$run = Runs::get( 'site-1', "run_ended_$outcome" );
	echo $outcome, ' ', json_encode( [ $run['session_status'], $run['success'], $run['exit_status'] ] ), "\n";
}
var_dump( array_key_exists( 'success', Runs::get( 'site-1', 'run_0f' ) ) );

echo "a long answer\n";
var_dump( strlen( Runs::get( 'site-1', 'run_big' )['result']['transcript'] ) );

echo "refused by the runner\n";
foreach ( [ 'get', 'events', 'cancel' ] as $verb ) {
	caught( static fn() => Runs::$verb( 'site-1', 'run_00' ), $verb );
	caught( static fn() => Runs::$verb( 'site-1', 'run_a' ), $verb );
}

echo "refused by the extension\n";
foreach ( [ '', '--help', '../run_0f', "run_0f\0", 'run_ 0', str_repeat( 'a', 65 ) ] as $reference ) {
	caught( static fn() => Runs::get( 'site-1', $reference ) );
}
caught( static fn() => Runs::get( 'site-1', "\xff" ) );
foreach ( [ [ 'status' => 'alive' ], [ 'limit' => 0 ], [ 'limit' => 201 ], [ 'offset' => -1 ], [ 'prefix' => 'run_0f' ], [ 'page' => 1 ] ] as $filter ) {
	echo caught( static fn() => Runs::list( 'site-1', $filter ) )->getMessage(), "\n";
}
foreach ( [ [ -1, 1 ], [ 0, 0 ], [ 0, 1001 ] ] as [ $after, $limit ] ) {
	echo caught( static fn() => Runs::events( 'site-1', 'run_0f', $after, $limit ) )->getMessage(), "\n";
}
caught( static fn() => Runs::list( '../x' ) );

echo "no answer\n";
foreach ( [ '/bin/true', '/nonexistent/runner' ] as $runner ) {
	[ , $output ] = in_child( 'caught( static fn() => WPCodebox\Native\Runs::list( "site-1" ) );', [ 'wp_codebox.runner' => $runner ] );
	echo "$runner: $output";
}
var_dump( zombies() );
?>
--EXPECT--
wp-codebox/run-list/v1 <- runs list --json --state /srv/state --site=site-1 --form=view
wp-codebox/run-list/v1 <- runs list --json --state /srv/state --site=site-1 --form=view --status=running --limit=200 --offset=400
wp-codebox/run-list/v1 <- runs list --json --state /srv/state --site=site-1 --form=view --requester=7 --prefix=run_0f
wp-codebox/run/v1 <- runs get --json --state /srv/state --site=site-1 run_0f
wp-codebox/run-events/v1 <- runs events --json --state /srv/state --site=site-1 --after=0 --limit=200 run_0f
wp-codebox/run-events/v1 <- runs events --json --state /srv/state --site=site-1 --after=17 --limit=1000 run_0f
wp-codebox/run-cancellation/v1 <- runs cancel --json --state /srv/state --site=site-1 --form=view run_0f
string(0) ""
outcomes
succeeded ["completed",true,0]
partial ["completed",false,3]
timed_out ["failed",false,124]
cancelled ["failed",false,130]
error ["failed",false,125]
nothing ["failed",false,1]
bool(false)
a long answer
int(12582912)
refused by the runner
get: NotFoundException wp_codebox_run_not_found
get: ConflictException wp_codebox_run_ambiguous
events: NotFoundException wp_codebox_run_not_found
events: ConflictException wp_codebox_run_ambiguous
cancel: NotFoundException wp_codebox_run_not_found
cancel: ConflictException wp_codebox_run_ambiguous
refused by the extension
NotFoundException wp_codebox_run_not_found
NotFoundException wp_codebox_run_not_found
NotFoundException wp_codebox_run_not_found
NotFoundException wp_codebox_run_not_found
NotFoundException wp_codebox_run_not_found
NotFoundException wp_codebox_run_not_found
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
filter.status must be running or ended
InvalidInputException wp_codebox_input_invalid
filter.limit must be a whole number from 1 to 200
InvalidInputException wp_codebox_input_invalid
filter.limit must be a whole number from 1 to 200
InvalidInputException wp_codebox_input_invalid
filter.offset must be a whole number from 0
InvalidInputException wp_codebox_input_invalid
filter.prefix must be used with requester
InvalidInputException wp_codebox_input_invalid
there is no field filter.page; accepted are: status, limit, offset, requester, prefix
InvalidInputException wp_codebox_input_invalid
after must be a whole number from 0: the cursor of the previous page
InvalidInputException wp_codebox_input_invalid
limit must be a whole number from 1 to 1000
InvalidInputException wp_codebox_input_invalid
limit must be a whole number from 1 to 1000
InvalidInputException wp_codebox_input_invalid
no answer
/bin/true: UnavailableException wp_codebox_runner_unavailable
/nonexistent/runner: UnavailableException wp_codebox_runner_unavailable
int(0)
