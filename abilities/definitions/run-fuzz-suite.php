<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-fuzz-suite`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run a fuzz suite', 'codebox' ),
	'description'   => __( 'Runs the cases of a suite in a WordPress of a disposable sandbox. Nothing runs on this site; a suite that must run there is answered with the status "unsupported".', 'codebox' ),
	'input_schema'  => 'run-fuzz-suite-input',
	'output_schema' => 'fuzz-suite-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->fuzz->run( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
