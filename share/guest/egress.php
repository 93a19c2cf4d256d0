<?php
/**
 * Configures PHP's stream functions to use the egress proxy.
 *
 * Runs before every script when the run's policy allows network access. cURL reads the proxy from environment
 * variables; `file_get_contents()`, `copy()` and other stream functions read it only from their context, so
 * this file sets the default context. A script that requests the guest's own site (`http://localhost`)
 * through a stream must pass its own context, because streams have no list of proxy exceptions.
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
