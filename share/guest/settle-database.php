<?php
/**
 * Brings the guest's database to rest, so that its file alone is all of it.
 *
 * Runs before a snapshot, without WordPress: nothing of the site takes part. Prints
 * {"database": "settled" | "absent" | "busy" | "damaged"}.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

$answer = static function ( string $state ): never {
	echo json_encode( array( 'database' => $state ) ), "\n";
	exit( 0 );
};

// The guest's root, wherever it lies, holds this file at /opt/codebox/guest.
$file = rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-content/database/.ht.sqlite';

if ( ! is_file( $file ) ) {
	$answer( 'absent' );
}

try {
	$database = new PDO( 'sqlite:' . $file, null, null, array( PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION ) );
	$database->exec( 'PRAGMA busy_timeout = 5000' );
	// The answer is {busy, frames in the log, frames written}; a database without a log answers 0, -1, -1.
	$row = $database->query( 'PRAGMA wal_checkpoint(TRUNCATE)' )->fetch( PDO::FETCH_NUM );
	if ( is_array( $row ) && 0 !== (int) $row[0] ) {
		$answer( 'busy' );
	}
	// Nobody writes now: a lock that is had and given back says so.
	$database->exec( 'BEGIN EXCLUSIVE' );
	$database->exec( 'ROLLBACK' );
	$check = $database->query( 'PRAGMA quick_check(1)' )->fetchColumn();
	// Closed, so that no journal stays beside it.
	$database = null;
	$answer( 'ok' === $check ? 'settled' : 'damaged' );
} catch ( PDOException $error ) {
	// SQLITE_BUSY and SQLITE_LOCKED are 5 and 6.
	$code = (int) ( $error->errorInfo[1] ?? 0 );
	$answer( in_array( $code, array( 5, 6 ), true ) ? 'busy' : 'damaged' );
}
