<?php
/**
 * Definition of the WordPress ability `wp-codebox/browser-contained-site-sync-manifest`.
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
	'label'         => __( 'Get the manifest of a site in the browser', 'codebox' ),
	'description'   => __( 'Asks the plugin that synchronises sites in the browser for the manifest of one such site.', 'codebox' ),
	'input_schema'  => 'browser-contained-site-sync-input',
	'output_schema' => 'browser-contained-site-sync-manifest',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sync->request( 'manifest', $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
