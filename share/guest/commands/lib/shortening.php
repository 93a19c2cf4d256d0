<?php
/**
 * Shortens documents that are too large to print.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Size limit of a printed document, in bytes; a larger one would be truncated at an arbitrary position on its
 * way to the caller.
 */
const SHOWN_BYTES = 56 * 1024;

/**
 * Returns the document to print. For a large document, the complete one is written to a file, the printed one
 * has only the first items of each list, and `cut` reports this.
 *
 * @param array<string,mixed> $document Document to print.
 * @return array<string,mixed>
 */
function shortened( array $document ): array {
	$whole = document_text( $document );
	if ( strlen( $whole ) <= SHOWN_BYTES || strlen( $whole ) > DOCUMENT_BYTES ) {
		return $document;
	}
	$name = basename( str_replace( '.', '-', Entry::$call['command'] ) ) . '.json';
	$file = write_artifact( $name, $whole, 'command-document' );
	foreach ( array( array( 500, 32768 ), array( 200, 16384 ), array( 100, 8192 ), array( 50, 4096 ), array( 20, 2048 ), array( 10, 1024 ), array( 5, 512 ), array( 2, 256 ) ) as list( $items, $bytes ) ) {
		$short = array_map( static fn ( $member ) => shorter( $member, $items, $bytes ), $document );
		$short = array(
			'cut' => array(
				'items' => $items,
				'texts' => $bytes,
				'bytes' => strlen( $whole ),
				'file'  => $file,
			),
		) + with_artifacts( $short, Entry::$artifacts );
		if ( strlen( document_text( $short ) ) <= SHOWN_BYTES ) {
			break;
		}
	}
	return $short;
}

/**
 * Shortens lists and strings of a value.
 *
 * @param mixed $value Value to shorten.
 * @param int   $items Maximum number of items per list.
 * @param int   $bytes Maximum number of bytes per string.
 */
function shorter( mixed $value, int $items, int $bytes ): mixed {
	if ( is_string( $value ) ) {
		return strlen( $value ) > $bytes ? cut( $value, $bytes ) : $value;
	}
	if ( is_object( $value ) ) {
		return (object) shorter( get_object_vars( $value ), PHP_INT_MAX, $bytes );
	}
	if ( ! is_array( $value ) ) {
		return $value;
	}
	return array_map( static fn ( $item ) => shorter( $item, $items, $bytes ), array_is_list( $value ) ? array_slice( $value, 0, $items ) : $value );
}
