<?php
/**
 * Definition of the WordPress ability `wp-codebox/create-browser-task-contract`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Connector\Scope;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Create a browser session with phases', 'codebox' ),
	'description'   => __( 'Creates a browser session for a task with phases, which the page executes.', 'codebox' ),
	'input_schema'  => 'create-browser-task-contract-input',
	'output_schema' => 'browser-task-product-dto',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->create->task( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
