--TEST--
Garbage collection calls the runner for one site, and a refusal is an exception with its code
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.state_dir=/srv/state
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Extension;

echo implode( ' ', Extension::gc( 'site-1' )['facts']['argv'] ), "\n";
$options = [
	'max_age_seconds'           => 60,
	'max_bytes'                 => 1000,
	'artifacts_max_age_seconds' => 0,
	'dry_run'                   => true,
];
echo implode( ' ', Extension::gc( 'site-1', $options )['facts']['argv'] ), "\n";
foreach ( [ [ 'max_age_seconds' => '1h' ], [ 'max_age_seconds' => -1 ], [ 'bundles' => true ], [ 'max_age_seconds' => 7 ] ] as $wrong ) {
	echo caught( static fn() => Extension::gc( 'site-1', $wrong ) )->getMessage(), "\n";
}
caught( static fn() => Extension::gc( '../x' ) );
var_dump( zombies() );
?>
--EXPECT--
gc --json --state /srv/state --site=site-1
gc --json --state /srv/state --site=site-1 --max-age=60s --max-bytes=1000 --artifacts-max-age=0s --dry-run
InvalidInputException wp_codebox_input_invalid
max_age_seconds must be a whole number from 0
InvalidInputException wp_codebox_input_invalid
max_age_seconds must be a whole number from 0
InvalidInputException wp_codebox_input_invalid
there is no field bundles; accepted are: max_age_seconds, max_bytes, artifacts_max_age_seconds, dry_run
UnavailableException wp_codebox_state_dir_invalid
it is refused
InvalidInputException wp_codebox_input_invalid
int(0)
