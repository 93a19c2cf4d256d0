<?php
/**
 * Checkpoints the guest's SQLite database, so its main file contains all data.
 *
 * Runs before a snapshot and does not load WordPress or other code of the site. Prints {"database": "settled"
 * | "absent" | "busy" | "damaged"}.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

$answer = static function ( string $state ): never {
	echo json_encode( array( 'database' => $state ) ), "\n";
	exit( 0 );
};

// This file is at /opt/codebox/guest below the guest's root, wherever the root is on the file system.
$file = rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-content/database/.ht.sqlite';

if ( ! is_file( $file ) ) {
	$answer( 'absent' );
}

try {
	$database = new PDO( 'sqlite:' . $file, null, null, array( PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION ) );
	$database->exec( 'PRAGMA busy_timeout = 5000' );
	// The row is {busy, frames in the log, frames written}; a database without a write-ahead log returns 0,
	// -1, -1.
	$row = $database->query( 'PRAGMA wal_checkpoint(TRUNCATE)' )->fetch( PDO::FETCH_NUM );
	if ( is_array( $row ) && 0 !== (int) $row[0] ) {
		$answer( 'busy' );
	}
	// Taking the exclusive lock proves that no other connection is writing.
	$database->exec( 'BEGIN EXCLUSIVE' );
	$database->exec( 'ROLLBACK' );
	$check = $database->query( 'PRAGMA quick_check(1)' )->fetchColumn();
	// Closes the connection, so no journal file stays beside the database.
	$database = null;
	$answer( 'ok' === $check ? 'settled' : 'damaged' );
} catch ( PDOException $error ) {
	// SQLITE_BUSY is 5, SQLITE_LOCKED is 6.
	$code = (int) ( $error->errorInfo[1] ?? 0 );
	$answer( in_array( $code, array( 5, 6 ), true ) ? 'busy' : 'damaged' );
}
