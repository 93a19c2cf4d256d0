<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-runtime-task`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run a task in a runtime', 'codebox' ),
	'description'   => __( 'Runs a task in the runtime that it names: in a sandbox of this host like run-agent-task, or in a runtime of a plugin of this site.', 'codebox' ),
	'input_schema'  => 'run-runtime-task-input',
	'output_schema' => 'runtime-task-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->tasks->run( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
