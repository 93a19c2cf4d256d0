<?php
/**
 * Abilities of the guest's site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/principal.php';
require_once __DIR__ . '/result-schema.php';

/**
 * Executes the ability that the command's arguments name.
 *
 * @param Arguments $arguments Arguments name, input, expected-result-schema, user, session,
 *                             principal, principal-json.
 * @return array<string,mixed> `wp-codebox/wordpress-ability-result/v1`.
 */
function ability( Arguments $arguments ): array {
	$name = $arguments->required( 'name' );
	if ( ! function_exists( 'wp_get_abilities' ) ) {
		throw Refusal::unsupported( 'this WordPress has no Abilities API; it needs WordPress 6.9 or newer' );
	}
	$user = act_as_principal( $arguments, Users::administrator() );
	// WordPress only raises a notice for an unknown name, so the names are compared first.
	$known = array();
	foreach ( wp_get_abilities() as $one ) {
		$known[ $one->get_name() ] = $one;
	}
	if ( ! isset( $known[ $name ] ) ) {
		ksort( $known );
		throw new Refusal( 'ability-missing', sprintf( 'there is no ability %s; name one of: %s', Arguments::shown( $name ), implode( ', ', array_slice( array_keys( $known ), 0, 60 ) ) ) );
	}
	$document = array(
		'schema'  => 'wp-codebox/wordpress-ability-result/v1',
		'ability' => $name,
		'user'    => Users::row( $user ),
	);
	$input  = $arguments->value( 'input' );
	$result = null === $input ? $known[ $name ]->execute() : $known[ $name ]->execute( $input );
	if ( is_wp_error( $result ) ) {
		throw new Refusal( (string) $result->get_error_code(), $result->get_error_message(), $document + array( 'data' => plain( $result->get_error_data() ) ) );
	}
	$why = result_schema_violation( $arguments->first( 'expected-result-schema' ), $result );
	if ( null !== $why ) {
		throw new Refusal( 'result-schema', $why, $document );
	}
	return $document + array(
		'status' => 'completed',
		'result' => $result,
	);
}
