<?php
/**
 * The PHP process that starts a run: reads the request and prints each event as one line.
 */

declare(strict_types=1);

use WPCodebox\Native\Exception as CodeboxException;
use WPCodebox\Native\Run;

set_time_limit( 0 );
while ( ob_get_level() > 0 ) {
	ob_end_clean();
}

/** Prints one line of the answer and flushes it. */
function say( string $kind, mixed $value ): void {
	echo json_encode( [ $kind => $value ], JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE ), "\n";
	flush();
}

say( 'worker', getmypid() );
try {
	[ $task, $host ] = json_decode( (string) file_get_contents( 'php://input' ), true );

	$run = Run::start( $task, $host );
	say( 'run', $run->id() );
	$result = $run->wait( static fn( array $event ) => say( 'event', $event['type'] ) );
	say( 'result', [ 'outcome' => $result['outcome'], 'summary' => $result['summary'] ] );
} catch ( CodeboxException $e ) {
	say( 'error', [ 'code' => $e->errorCode, 'message' => $e->getMessage() ] );
}
