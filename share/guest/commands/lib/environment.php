<?php
/**
 * Environment variables that a caller sets for tests and workloads.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Returns the environment variables of the argument env-json; null leaves a variable as it is.
 *
 * @param Arguments $arguments Guest command arguments with `env-json`.
 * @return array<string,string>
 */
function environment_variables( Arguments $arguments ): array {
	$environment = array();
	foreach ( $arguments->object( 'env-json' ) as $name => $value ) {
		if ( null === $value ) {
			continue;
		}
		if ( 1 !== preg_match( '/^[A-Za-z_][A-Za-z0-9_]{0,99}$/D', (string) $name ) || ! is_scalar( $value ) || 1 === preg_match( '/^(?:CODEBOX_|LD_|PATH$|HOME$|TMPDIR$)/', (string) $name ) ) {
			throw Refusal::input( sprintf( 'env-json has %s, but names are like MY_SETTING (not PATH, HOME, TMPDIR, LD_… or CODEBOX_…) and values texts, numbers or truth values', Arguments::shown( $name ) ) );
		}
		$environment[ $name ] = is_bool( $value ) ? ( $value ? '1' : '0' ) : (string) $value;
	}
	return $environment;
}
