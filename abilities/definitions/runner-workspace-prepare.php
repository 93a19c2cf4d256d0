<?php
/**
 * Definition of the WordPress ability `wp-codebox/runner-workspace-prepare`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Prepare a runner workspace', 'codebox' ),
	'description'   => __( 'Lets the backend that is set up on this site check out a repository. Without a backend, the answer has the status "unavailable".', 'codebox' ),
	'input_schema'  => 'runner-workspace-prepare-input',
	'output_schema' => 'runner-workspace-prepare-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->workspaces->prepare( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
