<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-agent-task-batch`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run several agent tasks', 'codebox' ),
	'description'   => __( 'Runs tasks one after the other, each in its own disposable sandbox, and waits until the last one ends. An invalid or failing task is reported as failed; the other tasks still run.', 'codebox' ),
	'input_schema'  => 'run-agent-task-batch-input',
	'output_schema' => 'agent-task-batch',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->batches->run( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
