<?php
/**
 * The process of one run of the stand-in extension: `php supervise.php <directory>`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

foreach ( [ 'exceptions', 'Bundles', 'Job', 'Runs', 'Run' ] as $part ) {
	require_once __DIR__ . '/' . $part . '.php';
}
// A lock held while this process lives; a process that can take it knows that the run has ended.
$lease = fopen( $argv[1] . '/lease', 'w' );
flock( $lease, LOCK_EX );
touch( $argv[1] . '/accepted' );
( new Job( $argv[1] ) )->run();
