<?php
/**
 * Documents that are too large to be shown: short lists and texts, and the whole as a file.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Of a document, bytes that are printed; more would be cut anywhere on its way to the caller. */
const SHOWN_BYTES = 56 * 1024;

/**
 * The document as it is printed. A larger one is left whole as a file; what is printed has its
 * first items of each list, and `cut` says so.
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
	$file = leave( $name, $whole, 'command-document' );
	foreach ( array( array( 500, 32768 ), array( 200, 16384 ), array( 100, 8192 ), array( 50, 4096 ), array( 20, 2048 ), array( 10, 1024 ), array( 5, 512 ), array( 2, 256 ) ) as list( $items, $bytes ) ) {
		$short = array_map( static fn ( $member ) => shorter( $member, $items, $bytes ), $document );
		$short = array(
			'cut'       => array(
				'items' => $items,
				'texts' => $bytes,
				'bytes' => strlen( $whole ),
				'file'  => $file,
			),
			'artifacts' => Entry::$artifacts,
		) + $short;
		if ( strlen( document_text( $short ) ) <= SHOWN_BYTES ) {
			break;
		}
	}
	return $short;
}

/**
 * A value with short lists and texts.
 *
 * @param mixed $value Value.
 * @param int   $items Of each list, items.
 * @param int   $bytes Of each text, bytes.
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
