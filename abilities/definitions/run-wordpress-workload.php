<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-wordpress-workload`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run a WordPress workload', 'codebox' ),
	'description'   => __( 'Runs commands in order in a WordPress of a disposable sandbox and returns what each one printed. Nothing runs on this site.', 'codebox' ),
	'input_schema'  => 'run-wordpress-workload-input',
	'output_schema' => 'wordpress-workload-run-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->workloads->run( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
