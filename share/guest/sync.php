<?php
/**
 * Guest program of file sync: answers one question after the other until its input ends.
 *
 * The first line of standard input is JSON, `{roots}`: mounts that may be written. Every further
 * line is a question, followed by bytes where it has some; every answer is one line of JSON,
 * `{ok: true, …}` or `{ok: false, code, message, found?}`, followed by bytes for `read`.
 *
 * put    {path, length, sha256, mode}, then the bytes    replaces or makes a file
 * remove {path, sha256}                                  removes one; none is no mistake
 * read   {path, most}                                    a whole file, raw, behind the answer
 * tree   {path, most}                                    every regular file below, with its digest, and
 *                                                        what cannot be carried, with why
 *
 * `sha256` is what the file must hold before: an empty text says that there must be none, null
 * that it does not matter. A file takes its place with one rename. A path is resolved here, in the
 * guest, whose user can write nowhere else: a directory that becomes a link meanwhile leads to
 * nothing that is not the guest's own.
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
// The answers have standard output for themselves.
ini_set( 'display_errors', 'stderr' );

$first  = json_decode( (string) fgets( STDIN ), true );
$places = new Places( (array) ( $first['roots'] ?? array() ), '/' );
$sync   = new Sync( $places, new Writing( $places ) );

while ( false !== ( $line = fgets( STDIN ) ) ) {
	$question = json_decode( $line, true );
	if ( ! is_array( $question ) ) {
		// Whatever follows cannot be told from bytes.
		exit( 2 );
	}
	list( $answer, $bytes ) = $sync->answer( $question, STDIN );
	fwrite( STDOUT, json_encode( $answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE ) . "\n" . $bytes );
	fflush( STDOUT );
}
