<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-agent-task-fanout`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run agent workers in parallel', 'codebox' ),
	'description'   => __( 'Runs several agent tasks (workers), each in its own disposable sandbox and in parallel as far as their dependencies permit, waits until the last one ends and aggregates the results. With an invalid plan of workers none starts.', 'codebox' ),
	'input_schema'  => 'run-agent-task-fanout-input',
	'output_schema' => 'agent-fanout-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->fanouts->run( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
