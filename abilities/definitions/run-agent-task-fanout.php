<?php
/**
 * Ability wp-codebox/run-agent-task-fanout.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run agent workers at once', 'codebox' ),
	'description'   => __( 'Runs workers that may depend on each other, some at once, each in a disposable sandbox of its own, waits for the last and says what they come to together. A plan that is wrong starts nothing.', 'codebox' ),
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
