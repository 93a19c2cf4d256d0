<?php
/**
 * Definition of the WordPress ability `wp-codebox/browser-contained-site-sync-delegation`.
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
	'label'         => __( 'Show the plugin that synchronises sites in the browser', 'codebox' ),
	'description'   => __( 'Says whether a plugin of this site synchronises sites in the browser, and lists the REST route and ability of each of its operations.', 'codebox' ),
	'input_schema'  => 'browser-contained-site-sync-input',
	'output_schema' => 'browser-contained-site-sync-delegation',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sync->request( 'delegation', $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];
