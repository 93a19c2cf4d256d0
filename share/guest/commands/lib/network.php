<?php
/**
 * Converts the guest's site to a multisite network for tests that need one.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/processes.php';

/**
 * Converts the site unless it is a network already; must run before this process loads WordPress. The site
 * stays a network.
 */
function make_network(): void {
	// make-network.php writes the constants of a network to this file.
	if ( is_file( root() . '/wordpress/wp-content/codebox-network.php' ) ) {
		return;
	}
	$guest    = dirname( __DIR__, 2 );
	$question = var_export(
		array(
			'name'  => 'tests',
			'title' => 'Tests',
			'sites' => array(),
		),
		true
	);
	$ended    = process( array( PHP_BINARY, "$guest/run-php.php", '-' ), "<?php\n\$codebox_question = $question;\nrequire " . var_export( "$guest/make-network.php", true ) . ";\n", array(), 65536 );
	if ( 0 !== $ended['exitCode'] ) {
		throw Refusal::failed( 'multisite: the site could not be made a network: ' . cut( trim( $ended['stderr'] ), 500 ) );
	}
}
