<?php
/**
 * Runs the cases of one phase inside the test site: `php main.php <phase> [<part of a test name>]`.
 *
 * Phases: `bare` without extension, `fake` with the stand-in, `fake-repeated` with the stand-in for cases
 * that `native` runs unchanged, `native` with the real extension, `network` with the stand-in on
 * multisite, `network-native` with the real extension there.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Tests;

[ , $phase ] = $argv;
define( 'WP_USE_THEMES', false );
$_SERVER['HTTP_HOST']   = 'localhost';
$_SERVER['REQUEST_URI'] = '/';
require getenv( 'TEST_SITE' ) . '/wp-load.php';
require __DIR__ . '/harness.php';

$flags   = (array) json_decode( (string) getenv( 'TEST_PHP_FLAGS' ), true );
[ $slice, $slices ] = array_map( 'intval', explode( '/', (string) getenv( 'TEST_SLICE' ) ) );
$harness = new Harness( $phase, $flags, $argv[2] ?? '' );
$cases   = [
	'bare'    => [ 'schemas', 'codes', 'gate', 'units', 'applied-files' ],
	'fake'    => [ 'browser-files', 'browser-assets', 'models', 'credentials', 'tools', 'cli-models', 'links', 'adapters', 'reviews', 'transfers', 'replays', 'follow-ups', 'components', 'health', 'settings', 'screen', 'faults', 'run-only', 'public-facade', 'hooks', 'public-input', 'cli-public', 'browser-sessions', 'browser-sites', 'browser-runner', 'placements', 'access' ],
	'fake-repeated' => [ 'abilities', 'runs', 'detached', 'artifacts', 'applies', 'stages', 'hosts', 'audits', 'rest', 'cli-runs', 'cli-registry', 'cli-artifacts', 'cli-reviews', 'cli-others', 'facade', 'privacy', 'connectors', 'trusted-callers', 'bridge', 'connector-http', 'histories', 'delegations', 'runner-workspaces', 'runtime-tasks', 'workloads', 'cli-runtime' ],
	'network' => [ 'network', 'screen', 'access' ],
	'network-native' => [ 'connector-http', 'trusted-callers', 'network', 'direct-apply', 'access' ],
	'native'  => [ 'browser-bundles', 'abilities', 'runs', 'model-runs', 'detached', 'groups', 'artifacts', 'links', 'applies', 'histories', 'reviews', 'stages', 'hosts', 'transfers', 'replays', 'follow-ups', 'audits', 'components', 'rest', 'cli-runs', 'cli-registry', 'cli-groups', 'cli-artifacts', 'cli-reviews', 'cli-others', 'health', 'facade', 'settings', 'privacy', 'native', 'connectors', 'trusted-callers', 'bridge', 'connector-http', 'run-only', 'direct-apply', 'confirmations', 'git-branch', 'delegations', 'runner-workspaces', 'runtime-tasks', 'workloads', 'cli-runtime', 'public-outputs', 'browser-artifacts', 'site-seeds', 'envelopes', 'placements', 'access', 'shares' ],
];
if ( 'bare' === $phase ) {
	$harness->test(
		'every file of cases/ belongs to a phase',
		static function () use ( $harness, $cases ): void {
			$files = array_map( static fn( string $file ): string => basename( $file, '.php' ), (array) glob( __DIR__ . '/cases/*.php' ) );
			$harness->same( [], array_values( array_diff( $files, ...array_values( $cases ) ) ) );
		}
	);
}
foreach ( $cases[ $phase ] as $number => $case ) {
	if ( $number % $slices !== $slice - 1 ) {
		continue;
	}
	$began = microtime( true );
	( require __DIR__ . '/cases/' . $case . '.php' )( $harness );
	printf( "slow %.1f s wordpress %s %s\n", microtime( true ) - $began, $phase, $case );
}
file_put_contents( (string) getenv( 'TEST_RESULT' ), $harness->passed . ' ' . $harness->failed . "\n" );
exit( $harness->failed > 0 ? 1 : 0 );
