<?php
/**
 * Starts a held sandbox (kept open after its setup), sends it requests like a PHP caller, and prints
 * the results as one JSON object. Arguments: site, directory of the mount.
 */

declare(strict_types=1);

use WPCodebox\Native\Exception as CodeboxException;
use WPCodebox\Native\Run;
use WPCodebox\Native\Sandbox;

[ , $site, $source ] = $_SERVER['argv'];
$wordpress = getenv( 'CODEBOX_WORDPRESS' );
$run       = Run::start(
	[
		'goal' => 'Look around.',
	],
	[
		'site'      => $site,
		'mode'      => 'detached',
		'wordpress' => $wordpress,
		'denied'    => [ $wordpress ],
		'mounts'    => [ [ 'source' => $source, 'target' => '/workspace/p' ] ],
		'hold'      => [ 'ttl_ms' => 120_000 ],
	]
);
$ask = static fn( array $request, array $options = [] ): array => Sandbox::ask( $site, $run->id(), $request, $options + [ 'actor' => 'php:test' ] );

$seen            = [];
$program         = [ 'sh', '-c', 'cat; wp option get home; echo made >new.txt; exit 4' ];
$seen['exec']    = $ask( [ 'type' => 'exec', 'argv' => $program ], [ 'stdin' => "words\n" ] );
$words           = chunk_split( bin2hex( random_bytes( 2 << 20 ) ), 1000, "\n" );
$ended           = $ask( [ 'type' => 'exec', 'argv' => [ 'cat' ] ], [ 'stdin' => $words, 'timeout_ms' => 60_000 ] );
$seen['echoed']  = $ended['stdout'] === $words;
$seen['status']  = $ask( [ 'type' => 'status' ] );
$seen['command'] = $ask( [ 'type' => 'command', 'call' => [ 'command' => 'wordpress.wp-cli', 'args' => [ 'command=option get blogname' ] ] ] );
try {
	$ask( [ 'type' => 'command', 'call' => [ 'command' => 'no-such-command' ] ] );
} catch ( CodeboxException $e ) {
	$seen['refused'] = $e->errorCode;
}
$ask( [ 'type' => 'close', 'reason' => 'seen' ] );
$result          = $run->wait();
$seen['outcome'] = $result['outcome'];
$seen['changed'] = array_column( $result['changed_files'], 'path' );
try {
	$ask( [ 'type' => 'status' ] );
} catch ( CodeboxException $e ) {
	$seen['afterwards'] = $e->errorCode;
}
echo json_encode( $seen ), "\n";
