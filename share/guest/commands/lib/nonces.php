<?php
/**
 * Creates nonces of the guest's site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/outputs.php';

/** Directory in which nonces are stored, below the guest's root. */
const NONCES = '/tmp/codebox-auth';

/**
 * Creates a nonce of the current user and session.
 *
 * @param string $action Nonce action; `-1` is WordPress's default.
 * @return array{action: string, nonce: string, lifetimeSeconds: int}
 */
function nonce( string $action ): array {
	return array(
		'action'          => $action,
		'nonce'           => wp_create_nonce( '-1' === $action ? -1 : $action ),
		// A nonce may be created at the end of its first half-life, so only one half is certain.
		'lifetimeSeconds' => (int) ( apply_filters( 'nonce_life', DAY_IN_SECONDS, '-1' === $action ? -1 : $action ) / 2 ),
	);
}

/**
 * Creates a nonce of the current user and session, stores it in a guest file and returns its description for
 * the result. Results go into transcripts, journals and bundles, so the value is only in that file.
 *
 * @param string              $action Nonce action; `-1` is WordPress's default.
 * @param array<string,mixed> $holder User and optional session of the nonce.
 * @return array<string,mixed>
 * @throws Refusal When the nonce cannot be stored.
 */
function kept_nonce( string $action, array $holder ): array {
	$kept      = nonce( $action ) + $holder;
	$directory = root() . NONCES;
	if ( ! is_dir( $directory ) && ! mkdir( $directory, 0700, true ) && ! is_dir( $directory ) ) {
		throw new Refusal( 'disk', NONCES . ' cannot be made' );
	}
	// One file per action and holder, so a nonce replaces only its predecessor.
	$of   = array( $action, $holder['user']['id'] ?? null, $holder['session'] ?? null );
	$file = NONCES . '/' . substr( hash( 'sha256', (string) json_encode( $of ) ), 0, 16 ) . '.json';
	$json = (string) json_encode( $kept, JSON_UNESCAPED_SLASHES );
	$mask = umask( 0077 );
	$done = strlen( $json ) === @file_put_contents( root() . $file, $json );
	umask( $mask );
	if ( ! $done ) {
		throw new Refusal( 'disk', 'the nonce cannot be written' );
	}
	$artifacts = array( 'auth' => $file );
	if ( isset( $holder['session'] ) ) {
		$artifacts['storageState'] = Sessions::storage_state( $holder['session'] );
	}
	return array( 'nonce' => array( 'present' => true ) ) + $kept + array( 'artifacts' => (object) $artifacts );
}

/**
 * Returns a result document, and writes it as a file for the bundle: `artifacts.summary`. The document holds
 * no cookie and no nonce; `artifacts.auth` and `artifacts.storageState` are guest files that stay in the guest.
 *
 * @param Arguments           $arguments Guest command arguments with `output-dir`.
 * @param string              $name      Name of the file.
 * @param array<string,mixed> $document  Document to write.
 * @return array<string,mixed>
 */
function delivered( Arguments $arguments, string $name, array $document ): array {
	$document = named( $document );
	$json     = json_encode( $document, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE ) . "\n";
	$file     = write_output( $arguments, $name, $json, 'session-summary' );

	$document['artifacts'] = (object) ( (array) ( $document['artifacts'] ?? array() ) + array( 'summary' => $file ) );
	return $document + array( 'file' => $file );
}
