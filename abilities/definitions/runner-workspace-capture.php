<?php
/**
 * Definition of the WordPress ability `wp-codebox/runner-workspace-capture`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Capture a runner workspace', 'codebox' ),
	'description'   => __( 'Reads the changes in a runner workspace (a checkout of a repository) through the backend that this site configures.', 'codebox' ),
	'input_schema'  => 'runner-workspace-capture-input',
	'output_schema' => 'runner-workspace-capture-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->workspaces->capture( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];
