<?php
/**
 * Definition of the WordPress ability `wp-codebox/browser-contained-site-sync-apply`.
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
	'label'         => __( 'Apply a plan of a site in the browser', 'codebox' ),
	'description'   => __( 'Asks the plugin that synchronises sites in the browser to carry out an apply plan. The field "allow_host_mutation" needs the right to apply changes on this site.', 'codebox' ),
	'input_schema'  => 'browser-contained-site-sync-input',
	'output_schema' => 'browser-contained-site-sync-apply-result',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sync->request( 'apply', $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
