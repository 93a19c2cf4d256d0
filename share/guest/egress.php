<?php
/**
 * Lets PHP's stream functions find the way out of the guest.
 *
 * Runs before every script when the run's policy lets something out. cURL follows the
 * proxy variables of the environment by itself; `file_get_contents()`, `copy()` and the
 * like know a proxy only from their context, so the default context names it. A script
 * that asks the guest itself (`http://localhost`) through a stream passes a context of
 * its own: streams have no list of exceptions.
 *
 * @package WPCodebox
 */

( static function (): void {
	$proxy = getenv( 'http_proxy' );
	if ( ! is_string( $proxy ) || '' === $proxy ) {
		return;
	}
	stream_context_set_default(
		array(
			'http' => array(
				'proxy' => str_replace( 'http://', 'tcp://', $proxy ),
			),
		)
	);
} )();
