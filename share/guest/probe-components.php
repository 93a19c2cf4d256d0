<?php
/**
 * Checks whether the components of a run (read-only plugins from the host) are ready, and whether the
 * agent's ability exists.
 *
 * Request: {components: [{slug, probe: {type, name}|null}], ability: name|null, answer}. Reply: {components:
 * {slug: {ready, message}}, ability: {exists, namespaces}}.
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
wp_set_current_user( 1 );

/**
 * Returns the reason why a component is not ready; '' when it is.
 *
 * @param string     $slug  Slug of the component.
 * @param array|null $probe Readiness probe of the component.
 */
function codebox_probe( string $slug, ?array $probe ): string {
	$failures = (array) ( $GLOBALS['wp_codebox_component_failures'] ?? array() );
	if ( isset( $failures[ $slug ] ) ) {
		return 'the component threw an exception while WordPress loaded it: ' . $failures[ $slug ];
	}
	if ( null === $probe ) {
		return '';
	}
	if ( 'ability' === $probe['type'] ) {
		if ( ! function_exists( 'wp_get_abilities' ) ) {
			return 'this WordPress has no abilities';
		}
		return isset( wp_get_abilities()[ $probe['name'] ] ) ? '' : sprintf( 'the ability %s, which the component must register, is not registered', $probe['name'] );
	}
	$answer = apply_filters( $probe['name'], null );
	return true === $answer ? '' : sprintf( 'the filter %s must return true when the component is ready; it returned %s', $probe['name'], get_debug_type( $answer ) );
}

$codebox_answer = array( 'components' => array() );
foreach ( $codebox_question['components'] as $codebox_row ) {
	try {
		$codebox_message = codebox_probe( $codebox_row['slug'], $codebox_row['probe'] );
	} catch ( Throwable $codebox_thrown ) {
		$codebox_message = 'the readiness probe of the component threw an exception: ' . WPCodebox\Guest\thrown_sentence( $codebox_thrown );
	}
	$codebox_answer['components'][ $codebox_row['slug'] ] = array(
		'ready'   => '' === $codebox_message,
		'message' => $codebox_message,
	);
}

if ( isset( $codebox_question['ability'] ) ) {
	$codebox_names            = array();
	$codebox_answer['ability'] = array( 'exists' => false );
	try {
		$codebox_names = function_exists( 'wp_get_abilities' ) ? array_keys( wp_get_abilities() ) : array();
	} catch ( Throwable $codebox_thrown ) {
		fwrite( STDERR, 'abilities: ' . WPCodebox\Guest\thrown_sentence( $codebox_thrown ) . "\n" );
	}
	$codebox_answer['ability']['exists']     = in_array( $codebox_question['ability'], $codebox_names, true );
	$codebox_answer['ability']['namespaces'] = array_values( array_unique( array_map( static fn( string $name ): string => explode( '/', $name )[0] . '/', $codebox_names ) ) );
}

WPCodebox\Guest\answer( $codebox_question, $codebox_answer );
