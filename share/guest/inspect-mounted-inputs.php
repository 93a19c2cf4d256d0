<?php
/**
 * Guest program of the command `inspect-mounted-inputs`.
 *
 * Reads a JSON list of {target, source, mode} on standard input and prints, as JSON, the files at each
 * target: {command, mounts: [{target, source, mode, exists, entries, entryCount}]}. The source is the
 * target, because no path of the host enters the guest. Lists at most 1,000
 * names per mount. A name that is not UTF-8 is printed with the replacement character.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

const MAX_NAMES = 1000;

$rows = json_decode( (string) stream_get_contents( STDIN ), true );
if ( ! is_array( $rows ) ) {
	fwrite( STDERR, "inspect-mounted-inputs: standard input is not a JSON list\n" );
	exit( 1 );
}

$mounts = array();
foreach ( $rows as $row ) {
	$target = (string) ( $row['target'] ?? '' );
	// Environment variable that is set only when the guest has no root file system of its own.
	$place = getenv( 'CODEBOX_ROOT' ) . $target;
	$names = is_dir( $place ) ? array_values( array_diff( (array) scandir( $place ), array( '.', '..' ) ) ) : array();

	$mounts[] = array(
		'target'     => $target,
		'source'     => (string) ( $row['source'] ?? $target ),
		'mode'       => (string) ( $row['mode'] ?? '' ),
		'exists'     => is_dir( $place ),
		'entries'    => array_slice( $names, 0, MAX_NAMES ),
		'entryCount' => count( $names ),
	);
}

echo json_encode(
	array(
		'command' => 'inspect-mounted-inputs',
		'mounts'  => $mounts,
	),
	JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE
), "\n";
