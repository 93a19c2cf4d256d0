<?php
/**
 * Guest program of the workspace tools: reads and changes files of the mounts.
 *
 * Standard input is one line of JSON, `{op, roots, cwd, …}`, followed by bytes for operations that take them.
 * Standard output is one line of JSON, `{ok: true, …}` or `{ok: false, code, message}`, followed by bytes for
 * `fetch`. Operations:
 *
 * read    {path, start_line, lines}                 lines of a text file
 * bytes   {path, offset, length}                    bytes, as base64
 * list    {path, depth, limit, offset}              entries below a directory
 * search  {path, pattern, regex, ignore_case, glob, context, limit, offset}
 * fetch   {paths}                                   whole files, raw, one after the other
 * store   {changes: [{path, action: write|delete, length, sha256, mode}]}, then the bytes
 * delete  {path, recursive}
 *
 * A path must lie below one of `roots`, both as written and as resolved by the file system; paths with `.git`
 * are refused. `store` carries out all of its changes or none. `roots` contains guest paths; CODEBOX_ROOT is
 * set only when the guest has no root file system of its own.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

require __DIR__ . '/workspace/refusal.php';
require __DIR__ . '/workspace/places.php';
require __DIR__ . '/workspace/reading.php';
require __DIR__ . '/workspace/search.php';
require __DIR__ . '/workspace/writing.php';

ini_set( 'memory_limit', '256M' );
// Standard output carries the reply only.
ini_set( 'display_errors', 'stderr' );

$line    = (string) fgets( STDIN );
$request = json_decode( $line, true );

try {
	if ( ! is_array( $request ) ) {
		throw new Refusal( 'request', 'the request is not JSON' );
	}
	$places = new Places( (array) ( $request['roots'] ?? array() ), (string) ( $request['cwd'] ?? '/' ) );

	$reading = new Reading( $places );
	$writing = new Writing( $places );

	$bytes  = null;
	$answer = match ( (string) ( $request['op'] ?? '' ) ) {
		'read'   => $reading->lines( $request ),
		'bytes'  => $reading->bytes( $request ),
		'list'   => $reading->list( $request ),
		'search' => ( new Search( $places, $reading ) )->run( $request ),
		'fetch'  => $reading->fetch( $request, $bytes ),
		'store'  => $writing->store( $request, STDIN ),
		'delete' => $writing->delete( $request ),
		default  => throw new Refusal( 'request', 'there is no such operation' ),
	};
	$answer = array( 'ok' => true ) + $answer;
} catch ( Refusal $refusal ) {
	$bytes  = null;
	$answer = array(
		'ok'      => false,
		'code'    => $refusal->reason,
		'message' => $refusal->getMessage(),
	);
}

echo json_encode( $answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE ), "\n", $bytes;
