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

/** Largest limits of a result: bytes of a query, kinds of queries, measured hook calls, hooks, cache operations. */
const QUERY_BYTES      = 10000;
const QUERY_KINDS      = 500;
const HOOK_CALLS       = 100000;
const HOOKS            = 500;
const CACHE_OPERATIONS = 1000;

/**
 * Creates the observer of the request; must run before WordPress is loaded.
 */
function observer(): Watch {
	return new Watch( min( QUERY_BYTES, Entry::$arguments->number( 'query-length-limit', 500, 1, PHP_INT_MAX ) ) );
}

/**
 * Sends a REST request in this process and reports its time, memory, queries and hooks.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @param Watch     $watch     Observer that records the effects.
 * @return array<string,mixed> Result document.
 */
function observe_performance( Arguments $arguments, Watch $watch ): array {
	$limits = array(
		'queryFingerprints' => min( QUERY_KINDS, $arguments->number( 'query-fingerprint-limit', 50, 0, PHP_INT_MAX ) ),
		'queryLength'       => min( QUERY_BYTES, $arguments->number( 'query-length-limit', 500, 1, PHP_INT_MAX ) ),
		'hookSamples'       => min( HOOK_CALLS, $arguments->number( 'hook-sample-limit', 5000, 0, PHP_INT_MAX ) ),
		'hooks'             => min( HOOKS, $arguments->number( 'hook-limit', 25, 1, PHP_INT_MAX ) ),
	);
	$times  = new Hook_Times( $limits['hookSamples'] );
	$user   = Users::act( $arguments );
	// Routes are registered on first use, before the measured request.
	rest_get_server();
	$watch->begin();
	$before = memory_get_usage();
	$times->begin();
	$answer = rest( $arguments );
	$times->end();
	return observed( 'performance-observation', $answer, $user ) + array(
		'timing'   => array_intersect_key( $watch->costs(), array_flip( array( 'wallMs', 'cpuMs' ) ) ),
		'memory'   => array(
			'peakBytes'  => $watch->costs()['peakMemoryBytes'],
			'grownBytes' => max( 0, memory_get_usage() - $before ),
		),
		'database' => $watch->queries( $limits['queryFingerprints'] ) + array( 'fingerprints' => array() ),
		'hooks'    => $times->document( $limits['hooks'] ),
		'php'      => $watch->php(),
		'metadata' => array( 'limits' => $limits ),
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
	$limit = min( CACHE_OPERATIONS, $arguments->number( 'sample-limit', 100, 1, PHP_INT_MAX ) );
	$churn = new Churn( $limit );
	$user  = observed_user( $arguments );
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
	return observed( 'cache-churn-observation', $answer, $user ) + array( 'artifactKind' => 'cache-churn-observation' ) + $churn->document() + array(
		'correlation' => (object) $names,
		'queries'     => $watch->queries(),
		'timing'      => array_intersect_key( $watch->costs(), array_flip( array( 'wallMs', 'cpuMs' ) ) ),
		'metadata'    => array( 'limits' => array( 'samples' => $limit ) ),
	);
}

/**
 * Returns the user of the request: of the session or the named one. For this command, `session` may also name a user.
 *
 * @param Arguments $arguments Arguments user and session.
 */
function observed_user( Arguments $arguments ): ?\WP_User {
	$session = $arguments->first( 'session' );
	if ( '' === $session || Sessions::exists( $session ) || null === Users::find( $session ) ) {
		return Users::act( $arguments );
	}
	$named = $arguments->first( 'user' );
	$user  = Users::get( $session );
	if ( '' !== $named && Users::get( $named )->ID !== $user->ID ) {
		throw new Refusal( 'session-differs', sprintf( 'session names the user %s, and user names %s; give one', $user->user_login, Arguments::shown( $named ) ) );
	}
	wp_set_current_user( $user->ID );
	return $user;
}

/**
 * Describes the request and its response; instead of the response data it reports their digest.
 *
 * @param string              $schema Name of the document's schema.
 * @param array<string,mixed> $answer Response of the request.
 * @param ?\WP_User           $user   User of the request.
 * @return array<string,mixed>
 */
function observed( string $schema, array $answer, ?\WP_User $user ): array {
	$body = document_text( array( $answer['data'] ) );
	return result( $schema, $answer['status'] < 400 ? 'ok' : 'error' ) + array(
		'request'  => array(
			'method' => $answer['method'],
			'path'   => $answer['path'],
			'user'   => Users::row( $user ),
		),
		'response' => array(
			'status' => $answer['status'],
			'bytes'  => strlen( $body ) - 2,
			'sha256' => hash( 'sha256', substr( $body, 1, -1 ) ),
		),
	);
}
