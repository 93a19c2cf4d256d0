<?php
/**
 * Nonces of the guest's site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * What results say of a nonce; it is the one of the current user and session.
 *
 * @param string $action Action; `-1` is WordPress's own for none.
 * @return array{action: string, nonce: string, lifetimeSeconds: int}
 */
function nonce( string $action ): array {
	return array(
		'action'          => $action,
		'nonce'           => wp_create_nonce( '-1' === $action ? -1 : $action ),
		// The present half of its life may nearly be over.
		'lifetimeSeconds' => (int) ( apply_filters( 'nonce_life', DAY_IN_SECONDS, '-1' === $action ? -1 : $action ) / 2 ),
	);
}

/**
 * Puts a document also where the caller wants it, and answers it.
 *
 * @param Arguments           $arguments Argument output-dir.
 * @param string              $name      Name of the file.
 * @param array<string,mixed> $document  Document.
 * @return array<string,mixed>
 */
function delivered( Arguments $arguments, string $name, array $document ): array {
	$directory = $arguments->first( 'output-dir' );
	if ( '' === $directory ) {
		return $document;
	}
	if ( ! is_dir( root() . $directory ) ) {
		@mkdir( root() . $directory, 0755, true );
	}
	$file = rtrim( $directory, '/' ) . '/' . $name;
	$json = json_encode( $document, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE ) . "\n";
	if ( strlen( $json ) !== @file_put_contents( root() . $file, $json ) ) {
		throw Refusal::input( "output-dir $directory cannot be written in the guest" );
	}
	return $document + array( 'file' => $file );
}
