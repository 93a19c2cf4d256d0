<?php
/**
 * Definition of the WordPress ability `wp-codebox/resolve-runtime-requirements`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Resolve requirements of a task', 'codebox' ),
	'description'   => __( 'Shows what a task needs (provider, model, components, secrets, connectors) and whether this site has it. Starts nothing and shows no secret.', 'codebox' ),
	'input_schema'  => 'resolve-runtime-requirements-input',
	'output_schema' => 'runtime-requirements-readiness',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->requirements->resolve( $input, $authority ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];
