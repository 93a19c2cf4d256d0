<?php
/**
 * Ability wp-codebox/run-agent-task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run an agent task', 'codebox' ),
	'description'   => __( 'Runs a coding agent against a plugin or theme in a disposable sandbox and answers with a bundle that holds the change, or after 20 seconds with a handle of the run that goes on. The site is not touched.', 'codebox' ),
	'input_schema'  => 'run-agent-task-input',
	'output_schema' => [ 'agent-task-run', 'run-handle' ],
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->runs->answer( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
