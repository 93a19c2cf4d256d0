<?php
/**
 * Definition of the WordPress ability `wp-codebox/run-agent-task`.
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
	'description'   => __( 'Runs a coding agent against a plugin or theme in a disposable sandbox and returns a bundle with the change, or after 20 seconds a handle of the run, which continues. The site is not changed.', 'codebox' ),
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
