<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-runtime-package`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run a package', 'codebox' ),
	'description'   => __( 'Runs a workflow of an agent package in a disposable sandbox, or in the runtime that a plugin of this site provides.', 'codebox' ),
	'input_schema'  => 'run-runtime-package-input',
	'output_schema' => 'runtime-package-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->packages->run( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
