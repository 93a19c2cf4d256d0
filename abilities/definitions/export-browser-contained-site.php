<?php
/**
 * Definition of the WordPress ability `wp-codebox/export-browser-contained-site`.
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
	'label'         => __( 'Describe an export of a site in the browser', 'codebox' ),
	'description'   => __( 'Says how a site in the browser is exported. Its contents are in the browser, so this host exports nothing.', 'codebox' ),
	'input_schema'  => 'export-browser-contained-site-input',
	'output_schema' => 'browser-contained-site-export',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->exports->export( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];
