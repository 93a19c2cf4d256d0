<?php
/**
 * Guest program of file sync: answers requests one after the other until its input ends.
 *
 * The first line of standard input is JSON, `{roots}`: the writable mounts. Every further line is a request,
 * followed by bytes for `put`; every reply is one line of JSON, `{ok: true, …}` or `{ok: false, code,
 * message, found?}`, followed by bytes for `read`.
 *
 * put    {path, length, sha256, mode}, then the bytes  replaces or creates a file
 * remove {path, sha256}                                removes a file; a missing one is no error
 * read   {path, most}                                  the whole file as raw bytes after the reply
 * tree   {path, most}                                  regular files below the path with digests,
 *                                                      entries that cannot be synced with reasons
 *
 * `sha256` is the expected digest of the current file: '' means that no file may exist, null skips the check.
 * A file is replaced by one rename. Paths are resolved inside the guest, so a directory that is replaced by a
 * symlink in the meantime can only lead to files that the guest may write anyway.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

require __DIR__ . '/workspace/refusal.php';
require __DIR__ . '/workspace/places.php';
require __DIR__ . '/workspace/writing.php';
require __DIR__ . '/sync/sync.php';

ini_set( 'memory_limit', '256M' );
// Standard output carries replies only.
ini_set( 'display_errors', 'stderr' );

$first  = json_decode( (string) fgets( STDIN ), true );
$places = new Places( (array) ( $first['roots'] ?? array() ), '/' );
$sync   = new Sync( $places, new Writing( $places ) );

while ( false !== ( $line = fgets( STDIN ) ) ) {
	$question = json_decode( $line, true );
	if ( ! is_array( $question ) ) {
		// Without a valid request line, the following bytes cannot be told apart from requests.
		exit( 2 );
	}
	list( $answer, $bytes ) = $sync->answer( $question, STDIN );
	fwrite( STDOUT, json_encode( $answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE ) . "\n" . $bytes );
	fflush( STDOUT );
}
