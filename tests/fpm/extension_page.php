<?php
/**
 * The page that test_extension.py requests from php-fpm: starts a run from a request file, notes
 * the run's id, waits, and at the agent's first output performs the action of the query.
 *
 * Query: `request` (file with the request as JSON), `note` (file for progress lines), `do` (the
 * action). With `do=runs` the page prints the result of `Runs::<verb>()` with `arguments` (JSON),
 * or the code of its exception.
 */

declare(strict_types=1);

use WPCodebox\Native\{Exception as CodeboxException, Run, Runs};

$note = static fn( string $line ) => file_put_contents( $_GET['note'], $line . "\n", FILE_APPEND );
$do   = $_GET['do'];
if ( 'pid' === $do ) {
	echo getmypid();
	return;
}
if ( 'opcache' === $do ) {
	echo json_encode( opcache_get_status( false )['opcache_enabled'] ?? false );
	return;
}
if ( 'runs' === $do ) {
	try {
		echo json_encode( Runs::{$_GET['verb']}( ...json_decode( $_GET['arguments'], true ) ) );
	} catch ( CodeboxException $e ) {
		echo json_encode( [ 'code' => $e->errorCode ] );
	}
	return;
}

// The arguments of `Run::start()`.
$request = json_decode( file_get_contents( $_GET['request'] ), true );
$note( 'worker ' . getmypid() );
register_shutdown_function( static fn() => $note( 'shutdown ' . connection_status() ) );
'ignore-abort' === $do && ignore_user_abort( true );

try {
	$run = Run::start( ...$request );
} catch ( CodeboxException $e ) {
	$note( 'refused ' . $e->errorCode . ' ' . $e->httpStatus . ' ' . $e->exitStatus );
	$note( 'because ' . $e->getMessage() );
	return;
}
$note( 'run ' . $run->id() );

$act = static function ( array $event ) use ( $do, $note, $run ): void {
	static $acted = false;
	if ( $acted || 'runtime.command.output' !== $event['type'] ) {
		return;
	}
	$acted = true;
	$note( 'output' );
	// Waits until the test has inspected the guest.
	for ( $i = 0; $i < 6000 && ! str_contains( file_get_contents( $_GET['note'] ), "go\n" ); ++$i ) {
		usleep( 10_000 );
	}
	switch ( $do ) {
		case 'exit':
			exit( 0 );
		case 'memory':
			$text = '';
			while ( true ) {
				$text .= str_repeat( 'x', 1024 * 1024 );
			}
			// No break: the loop above ends with a fatal error.
		case 'time':
			set_time_limit( 1 );
			while ( true ) {
				continue;
			}
			// No break: the loop above ends with a fatal error.
		case 'throw':
			throw new DomainException( 'mine' );
		case 'panic':
			putenv( 'WP_CODEBOX_TEST_PANIC=1' );
			break;
		case 'finish':
			fastcgi_finish_request();
			$note( 'finished' );
			break;
		case 'detach':
			$run->detach();
			exit( 0 );
	}
};

try {
	if ( 'many' === $do ) {
		// Waits for several runs in turn, as a fan-out does; the first run has already started.
		$runs = [ $run ];
		for ( $i = 1; $i < 3; ++$i ) {
			$runs[] = Run::start( ...$request );
		}
		$seen = array_fill( 0, 3, [] );
		while ( $runs ) {
			foreach ( $runs as $i => $one ) {
				$result = $one->wait(
					static function ( array $event ) use ( &$seen, $i ): void {
						$seen[ $i ][] = $event['seq'];
					},
					25
				);
				if ( null !== $result ) {
					unset( $runs[ $i ] );
					$note( 'one ' . $result['outcome'] );
				}
			}
		}
		foreach ( $seen as $numbers ) {
			$note( 'seen ' . ( range( 1, count( $numbers ) ) === $numbers && count( $numbers ) > 5 ? 'all' : json_encode( $numbers ) ) );
		}
	} elseif ( 'idle' === $do ) {
		// Waits longer than the time limit, which counts processor time only.
		set_time_limit( 1 );
		$before = getrusage();
		$run->wait( null, 3000 );
		$after = getrusage();
		$spent = ( $after['ru_utime.tv_sec'] - $before['ru_utime.tv_sec'] ) * 1000000 + $after['ru_utime.tv_usec'] - $before['ru_utime.tv_usec']
			+ ( $after['ru_stime.tv_sec'] - $before['ru_stime.tv_sec'] ) * 1000000 + $after['ru_stime.tv_usec'] - $before['ru_stime.tv_usec'];
		$note( 'waited ' . $spent );
	} elseif ( 'leave' === $do ) {
		$run->wait( null, 200 );
	} else {
		$result = $run->wait( $act );
		$note( 'result ' . $result['outcome'] );
	}
} catch ( CodeboxException $e ) {
	$note( 'error ' . $e->errorCode );
} finally {
	putenv( 'WP_CODEBOX_TEST_PANIC' );
}
echo 'end of page';
