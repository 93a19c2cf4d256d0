<?php
/**
 * Measures the cost of loading the extension in a PHP process: `php -n -r ''` with and without it.
 *
 * php tests/bench/load_cost.php [EXTENSION] [ROUNDS]
 *
 * EXTENSION defaults to CODEBOX_SO; measure a release build. The two commands alternate, so that
 * noise affects both. The budget applies to CPU time: on a busy machine the wall-clock time
 * mostly measures other processes. Raw samples with machine, commit and date are written to
 * tests/bench/results/. The script fails when the median cost reaches 1 ms.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

const BUDGET_MS = 1.0;

$extension = realpath( (string) ( $argv[1] ?? getenv( 'CODEBOX_SO' ) ) );
$rounds    = max( 30, (int) ( $argv[2] ?? 60 ) );
if ( false === $extension ) {
	fwrite( STDERR, "load_cost: name the extension: php tests/bench/load_cost.php target/release/wp_codebox.so\n" );
	exit( 1 );
}

/** CPU time of all finished child processes, in milliseconds. */
function children_cpu(): float {
	$usage = getrusage( 1 );
	return ( $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] ) * 1e3 + ( $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec'] ) / 1e3;
}

/** @return array{wall_ms: float, cpu_ms: float} Wall clock and CPU time of one run of the command. */
function sample( array $command ): array {
	$null    = [ 'file', '/dev/null', 'r+' ];
	$cpu     = children_cpu();
	$before  = hrtime( true );
	$process = proc_open( $command, [ $null, $null, $null ], $pipes );
	$status  = proc_close( $process );
	if ( 0 !== $status ) {
		fwrite( STDERR, 'load_cost: ' . implode( ' ', $command ) . " failed\n" );
		exit( 1 );
	}
	return [
		'wall_ms' => round( ( hrtime( true ) - $before ) / 1e6, 3 ),
		'cpu_ms'  => round( children_cpu() - $cpu, 3 ),
	];
}

function median( array $values ): float {
	sort( $values );
	$middle = intdiv( count( $values ), 2 );
	return 1 === count( $values ) % 2 ? $values[ $middle ] : ( $values[ $middle - 1 ] + $values[ $middle ] ) / 2;
}

$without = [ PHP_BINARY, '-n', '-r', '' ];
$with    = [ PHP_BINARY, '-n', '-d', "extension=$extension", '-r', 'exit( extension_loaded( "wp_codebox" ) ? 0 : 1 );' ];
sample( $with );
$samples = [
	'without' => [],
	'with'    => [],
];
for ( $i = 0; $i < $rounds; ++$i ) {
	$samples['without'][] = sample( $without );
	$samples['with'][]    = sample( $with );
}
$medians = [];
foreach ( [ 'wall_ms', 'cpu_ms' ] as $what ) {
	$without_ms       = array_column( $samples['without'], $what );
	$with_ms          = array_column( $samples['with'], $what );
	$medians[ $what ] = [
		'without' => median( $without_ms ),
		'with'    => median( $with_ms ),
		// Median of the differences of adjacent samples, which cancels a slow drift of the machine.
		'cost'    => round( median( array_map( static fn( float $a, float $b ): float => $b - $a, $without_ms, $with_ms ) ), 3 ),
		'ratio'   => round( median( $with_ms ) / median( $without_ms ), 3 ),
	];
}

$root    = dirname( __DIR__, 2 );
$results = __DIR__ . '/results';
is_dir( $results ) || mkdir( $results );
preg_match( '/^model name\s*: (.*)$/m', (string) @file_get_contents( '/proc/cpuinfo' ), $model );
file_put_contents(
	"$results/load-cost.json",
	json_encode(
		[
			'date'      => gmdate( 'Y-m-d\TH:i:s\Z' ),
			'commit'    => trim( (string) shell_exec( 'git -C ' . escapeshellarg( $root ) . ' rev-parse --short HEAD 2>/dev/null' ) ),
			'machine'   => [
				'cpu'    => $model[1] ?? 'unknown',
				'kernel' => php_uname( 'r' ),
				'php'    => PHP_VERSION,
			],
			'extension' => [
				'file'  => basename( $extension ),
				'bytes' => filesize( $extension ),
			],
			'medians'   => $medians,
			'samples'   => $samples,
		],
		JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES
	) . "\n"
);

foreach ( $medians as $what => $row ) {
	printf( "%-7s without %.2f, with %.2f, ratio %.3f, cost %.2f (medians of %d)\n", $what, $row['without'], $row['with'], $row['ratio'], $row['cost'], $rounds );
}
$passed = $medians['cpu_ms']['cost'] < BUDGET_MS;
printf( "load_cost: %d passed, %d failed\n", (int) $passed, (int) ! $passed );
exit( $passed ? 0 : 1 );
