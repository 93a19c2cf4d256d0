<?php
/**
 * Definition of the WordPress ability `wp-codebox/runner-workspace-command`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Run a command in a runner workspace', 'codebox' ),
	'description'   => __( 'Lets the backend that is set up on this site run a command in a runner workspace (a checkout of a repository). This plugin runs nothing itself.', 'codebox' ),
	'input_schema'  => 'runner-workspace-command-input',
	'output_schema' => 'runner-workspace-command-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->workspaces->command( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];
