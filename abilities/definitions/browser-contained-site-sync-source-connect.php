<?php
/**
 * Definition of the WordPress ability `wp-codebox/browser-contained-site-sync-source-connect`.
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
	'label'         => __( 'Connect the source of a site in the browser', 'codebox' ),
	'description'   => __( 'Asks the plugin that synchronises sites in the browser to connect one such site to its source. That plugin decides what a source is.', 'codebox' ),
	'input_schema'  => 'browser-contained-site-sync-input',
	'output_schema' => 'browser-contained-site-sync-source',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sync->request( 'source-connect', $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
