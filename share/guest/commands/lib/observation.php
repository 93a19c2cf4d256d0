<?php
/**
 * Commands that measure one REST request or observe its changes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/hook-times.php';
require_once __DIR__ . '/rest.php';
require_once __DIR__ . '/watch.php';

/**
 * Creates the observer of the request; must run before WordPress is loaded.
 */
function observer(): Watch {
	return new Watch( Entry::$arguments->number( 'query-length-limit', 500, 16, 10000 ) );
}

/**
 * Sends a REST request in this process and reports its time, memory, queries and hooks.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @param Watch     $watch     Observer that records the effects.
 * @return array<string,mixed> Result document.
 */
function observe_performance( Arguments $arguments, Watch $watch ): array {
	$fingerprints = $arguments->number( 'query-fingerprint-limit', 50, 1, 500 );
	$times        = new Hook_Times( $arguments->number( 'hook-sample-limit', 5000, 1, 10000 ) );
	$limit        = $arguments->number( 'hook-limit', 25, 1, 500 );
	$user         = Users::act( $arguments );
	// Routes are registered on first use, before the measured request.
	rest_get_server();
	$watch->begin();
	$before = memory_get_usage();
	$times->begin();
	$answer = rest( $arguments );
	$times->end();
	return observed( 'wp-codebox/performance-observation/v1', $answer, $user ) + array(
		'timing'  => array_intersect_key( $watch->costs(), array_flip( array( 'wallMs', 'cpuMs' ) ) ),
		'memory'  => array(
			'peakBytes'  => $watch->costs()['peakMemoryBytes'],
			'grownBytes' => max( 0, memory_get_usage() - $before ),
		),
		'queries' => $watch->queries( $fingerprints ),
		'hooks'   => $times->document( $limit ),
		'php'     => $watch->php(),
	);
}

/**
 * Sends a REST request in this process and reports its operations on cache, options and transients.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @param Watch     $watch     Observer that records the effects.
 * @return array<string,mixed> Result document.
 */
function observe_churn( Arguments $arguments, Watch $watch ): array {
	$churn = new Churn( $arguments->number( 'sample-limit', 100, 1, 1000 ) );
	$user  = Users::act( $arguments );
	rest_get_server();
	$watch->begin();
	$churn->begin();
	$answer = rest( $arguments );
	$churn->end();
	$names = array();
	foreach ( array( 'case-id', 'action-id', 'correlation-id' ) as $name ) {
		if ( $arguments->has( $name ) ) {
			$names[ lcfirst( str_replace( '-', '', ucwords( $name, '-' ) ) ) ] = cut( $arguments->text( $name ), 200 );
		}
	}
	return observed( 'wp-codebox/cache-churn-observation/v1', $answer, $user ) + $names + $churn->document() + array(
		'queries' => $watch->queries(),
		'timing'  => array_intersect_key( $watch->costs(), array_flip( array( 'wallMs', 'cpuMs' ) ) ),
	);
}

/**
 * Describes the request and its response; instead of the response data it reports their digest.
 *
 * @param string              $schema Schema id of the document.
 * @param array<string,mixed> $answer Response of the request.
 * @param ?\WP_User           $user   User of the request.
 * @return array<string,mixed>
 */
function observed( string $schema, array $answer, ?\WP_User $user ): array {
	$body = document_text( array( $answer['data'] ) );
	return array(
		'schema'   => $schema,
		'request'  => array(
			'method' => $answer['method'],
			'path'   => $answer['path'],
			'user'   => Users::row( $user ),
		),
		'status'   => $answer['status'],
		'response' => array(
			'bytes'  => strlen( $body ) - 2,
			'sha256' => hash( 'sha256', substr( $body, 1, -1 ) ),
		),
	);
}
