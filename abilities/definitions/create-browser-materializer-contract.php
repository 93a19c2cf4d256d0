<?php
/**
 * Definition of the WordPress ability `wp-codebox/create-browser-materializer-contract`.
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
	'label'         => __( 'Create a browser session that makes files', 'codebox' ),
	'description'   => __( 'Creates a browser session for a task that makes the files of a site.', 'codebox' ),
	'input_schema'  => 'create-browser-materializer-contract-input',
	'output_schema' => 'browser-materializer-product-dto',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->create->materializer( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
